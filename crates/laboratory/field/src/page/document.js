'use strict';
// Place, parent, think time in ms, origin, kind (other, image, script, style), above the fold.
const tree=TREE,waiting={},ended={};
let left=tree.length,largest=0;
performance.setResourceTimingBufferSize(9999);
new PerformanceObserver(list=>list.getEntries().forEach(entry=>largest=entry.startTime))
  .observe({type:'largest-contentful-paint',buffered:true});
const address=node=>`https://h${node[3]}.page.test/${node[0]}`;
for(const node of tree)(waiting[node[1]]??=[]).push(node);
function ask(node){
  const end=()=>{ended[node[0]]=performance.now();left--;arrived(node[0])};
  const insert=(name,set,place)=>{
    // Firefox tells no sizes of other hosts' objects without it.
    const element=Object.assign(document.createElement(name),{crossOrigin:'use-credentials'},set);
    element.onload=element.onerror=end;
    place.append(element);
  };
  const url=address(node),at=id=>document.getElementById(id);
  if(node[4]==1)insert('img',{src:url},at(node[5]?'above':'below'));
  else if(node[4]==2)insert('script',{src:url},document.head);
  else if(node[4]==3)insert('link',{rel:'stylesheet',href:url},document.head);
  // With the credentials of the others, so that it shares their connection.
  else fetch(url,{credentials:'include'}).then(answer=>answer.arrayBuffer()).then(end,end);
}
function arrived(place){
  for(const node of waiting[place]??[])node[2]?setTimeout(ask,node[2],node):ask(node);
  if(!left)setTimeout(finish,0);
}
function finish(){
  const [page]=performance.getEntriesByType('navigation');
  // The load event ends after what is called in it.
  if(!page.loadEventEnd)return setTimeout(finish,20);
  if(!finish.late){finish.late=true;return setTimeout(finish,200)}
  const entries={};
  for(const entry of performance.getEntriesByType('resource'))entries[entry.name]=entry;
  const tenths=time=>Math.round(time*10),paint=performance.getEntriesByName('first-contentful-paint')[0];
  const row=(entry,place,end)=>[place,tenths(entry?.startTime??0),tenths(entry?.responseStart??0),tenths(end),
    entry?.encodedBodySize??0,entry?.nextHopProtocol||'-'].join('_');
  const rows=[row(page,DOCUMENT,page.responseEnd),...tree.map(node=>row(entries[address(node)],node[0],ended[node[0]]))];
  fetch(`REPORT${tenths(performance.timeOrigin)}_${tenths(paint?.startTime??0)}_${tenths(largest)}_${tenths(page.loadEventStart)}~${rows.join('~')}`);
}
arrived(DOCUMENT);
