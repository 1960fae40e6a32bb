// Transfers by the TCP of gVisor's netstack in virtual time, for docs/records/gvisor.md.
package gvisor

import (
	"bufio"
	"bytes"
	"container/heap"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	mtu = 1500
	// Payload of a full segment: netstack keeps room for timestamps and three SACK blocks.
	segment = 1420
	// Half of it is the window: 4 MB, as in the model.
	receiveBuffer = 8_000_000
	nic           = 1
	port          = 80
	// With less than two netstack answers with a SYN cookie, without a window scale.
	backlog = 2
)

// One path and object.
type transfer struct {
	// And "-rfc6675", if losses are detected by count instead of by RACK.
	controller    string
	bitsPerSecond int64
	rtt           time.Duration
	buffer, bytes int
	object        int
	// Numbers of the packets that get lost, of those that leave the link.
	lost map[int]bool
}

// Virtual time: what is due runs in order, and nothing else advances it.
type clock struct {
	now    time.Duration
	events []*event
	number int
}

type event struct {
	clock  *clock
	at     time.Duration
	number int
	// In the clock's heap, or -1.
	place int
	do    func()
}

func (c *clock) Now() time.Time { return time.Unix(0, 0).Add(c.now) }

func (c *clock) NowMonotonic() tcpip.MonotonicTime { return tcpip.MonotonicTime{}.Add(c.now) }

func (c *clock) AfterFunc(after time.Duration, do func()) tcpip.Timer {
	e := &event{clock: c, place: -1, do: do}
	e.Reset(after)
	return e
}

func (e *event) Reset(after time.Duration) {
	e.Stop()
	c := e.clock
	c.number++
	e.at, e.number = c.now+max(after, 0), c.number
	heap.Push(c, e)
}

func (e *event) Stop() bool {
	if e.place < 0 {
		return false
	}
	heap.Remove(e.clock, e.place)
	return true
}

func (c *clock) Len() int { return len(c.events) }

func (c *clock) Less(i, j int) bool {
	one, other := c.events[i], c.events[j]
	return one.at < other.at || one.at == other.at && one.number < other.number
}

func (c *clock) Swap(i, j int) {
	c.events[i], c.events[j] = c.events[j], c.events[i]
	c.events[i].place, c.events[j].place = i, j
}

func (c *clock) Push(e any) {
	e.(*event).place = len(c.events)
	c.events = append(c.events, e.(*event))
}

func (c *clock) Pop() any {
	last := c.events[len(c.events)-1]
	c.events = c.events[:len(c.events)-1]
	last.place = -1
	return last
}

// What is measured of a transfer.
type found struct {
	completed time.Duration
	drops     int
	peak      int
	exit      time.Duration
	// Packets with data that entered the path, and the window, by round trip.
	began   time.Duration
	sent    []int
	windows []int
	window  int
}

func (f *found) String() string {
	rounds := make([]string, len(f.sent))
	for at := range f.sent {
		rounds[at] = fmt.Sprint(f.sent[at], ":", f.windows[at])
	}
	exit := "-"
	if f.exit > 0 {
		exit = fmt.Sprintf("%.3f", milliseconds(f.exit))
	}
	return fmt.Sprintf("%.3f,%d,%d,%s,%s", milliseconds(f.completed), f.drops, f.peak, exit, strings.Join(rounds, " "))
}

func milliseconds(span time.Duration) float64 { return float64(span) / float64(time.Millisecond) }

// Both ends and the path between them.
type network struct {
	clock
	found
	transfer  *transfer
	ends      [2]*stack.Stack
	endpoints [2]*channel.Endpoint
	links     [2]link
	// Packets that left the link down.
	left int
}

// By the end that sends.
const (
	server = iota
	client
)

var addresses = [2]tcpip.Address{tcpip.AddrFrom4([4]byte{192, 0, 2, 1}), tcpip.AddrFrom4([4]byte{192, 0, 2, 2})}

// A link of constant rate behind a drop-tail buffer. The packet being sent is not in the buffer.
type link struct {
	transfer *transfer
	freeAt   time.Duration
	begins   []time.Duration
	sizes    []int
	waiting  int
}

// The time at which the packet's last bit has left, or false if there is no room.
func (l *link) push(now time.Duration, size int) (time.Duration, bool) {
	for len(l.begins) > 0 && l.begins[0] <= now {
		l.waiting -= l.sizes[0]
		l.begins, l.sizes = l.begins[1:], l.sizes[1:]
	}
	if l.freeAt > now {
		if len(l.begins) >= l.transfer.buffer || l.waiting+size > l.transfer.bytes {
			return 0, false
		}
		l.begins, l.sizes = append(l.begins, l.freeAt), append(l.sizes, size)
		l.waiting += size
	} else {
		l.freeAt = now
	}
	l.freeAt += time.Duration(int64(size) * 8 * int64(time.Second) / l.transfer.bitsPerSecond)
	return l.freeAt, true
}

func (n *network) round() int {
	round := int((n.now - n.began) / n.transfer.rtt)
	for len(n.sent) <= round {
		n.sent = append(n.sent, 0)
		n.windows = append(n.windows, n.window)
	}
	return round
}

// Moves what an end has sent onto its link.
func (n *network) carry(from int) {
	for packet := n.endpoints[from].Read(); packet != nil; packet = n.endpoints[from].Read() {
		view := packet.ToView()
		packet.DecRef()
		bits := view.AsSlice()
		if from == server && payload(bits) > 0 {
			if n.began == 0 {
				n.began = n.now
			}
			n.sent[n.round()]++
		}
		over := &n.links[from]
		end, isTaken := over.push(n.now, len(bits))
		if from == server {
			n.peak = max(n.peak, len(over.begins))
			if !isTaken {
				n.drops++
			}
		}
		if !isTaken {
			continue
		}
		if from == server {
			n.left++
			if n.transfer.lost[n.left-1] {
				continue
			}
		}
		n.AfterFunc(end-n.now+n.transfer.rtt/2, func() {
			arrived := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(view)})
			n.endpoints[1-from].InjectInbound(header.IPv4ProtocolNumber, arrived)
			arrived.DecRef()
		})
	}
}

// Bytes of data in an IPv4 packet.
func payload(packet []byte) int {
	ip := header.IPv4(packet)
	return int(ip.PayloadLength()) - int(header.TCP(ip.Payload()).DataOffset())
}

// Runs what is due next, until all that follows from it at that instant is done.
func (n *network) step() bool {
	if n.Len() == 0 {
		return false
	}
	due := heap.Pop(n).(*event)
	n.now = due.at
	due.do()
	n.settle()
	return true
}

func (n *network) settle() {
	for from, end := range n.ends {
		// netstack's own threads have nothing left to do once they pause.
		end.Pause()
		end.Resume()
		n.carry(from)
	}
}

// Reads what netstack tells of the sender, after each segment that it received.
func (n *network) probe(state *tcp.TCPEndpointState) {
	if state.Sender.SndCwnd == 0 {
		return
	}
	n.window = state.Sender.SndCwnd * segment
	if n.began > 0 {
		n.windows[n.round()] = n.window
	}
	if state.Sender.Ssthresh < math.MaxInt && n.exit == 0 {
		n.exit = n.now
	}
}

func (n *network) start(t *testing.T, at int) {
	transport := tcp.NewProtocol
	if at == server {
		transport = tcp.NewProtocolProbe(n.probe)
	}
	end := stack.New(stack.Options{
		Clock:              n,
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{transport},
	})
	name, _, isByCount := strings.Cut(n.transfer.controller, "-")
	controller, isModerated := tcpip.CongestionControlOption(name), tcpip.TCPModerateReceiveBufferOption(false)
	recovery := tcpip.TCPRACKLossDetection
	if isByCount {
		recovery = 0
	}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 1, Default: receiveBuffer, Max: receiveBuffer}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 1, Default: 2 * n.transfer.object, Max: 2 * n.transfer.object}
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&controller, &isModerated, &receive, &send, &recovery,
	} {
		must(t, end.SetTransportProtocolOption(tcp.ProtocolNumber, option))
	}
	n.ends[at], n.endpoints[at] = end, channel.New(1<<16, mtu, "")
	must(t, end.CreateNIC(nic, n.endpoints[at]))
	address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: addresses[at].WithPrefix()}
	must(t, end.AddProtocolAddress(nic, address, stack.AddressProperties{}))
	end.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
}

func run(t *testing.T, transfer *transfer) *found {
	n := &network{transfer: transfer}
	n.links = [2]link{{transfer: transfer}, {transfer: transfer}}
	n.start(t, server)
	n.start(t, client)
	var queue waiter.Queue
	open := func(at int) tcpip.Endpoint {
		endpoint, err := n.ends[at].NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, &queue)
		must(t, err)
		return endpoint
	}
	listener, connection := open(server), open(client)
	must(t, listener.Bind(tcpip.FullAddress{Port: port}))
	must(t, listener.Listen(backlog))
	err := connection.Connect(tcpip.FullAddress{Addr: addresses[server], Port: port})
	if _, isStarted := err.(*tcpip.ErrConnectStarted); !isStarted {
		t.Fatal(err)
	}
	n.settle()
	var accepted tcpip.Endpoint
	for read := 0; read < transfer.object; {
		if !n.step() {
			t.Fatal("nothing is due")
		}
		if accepted == nil {
			if accepted, _, err = listener.Accept(nil); err == nil {
				n.send(t, accepted)
			} else {
				accepted = nil
			}
		}
		for {
			result, err := connection.Read(io.Discard, tcpip.ReadOptions{})
			if err != nil {
				break
			}
			read += result.Count
		}
		n.settle()
		n.completed = n.now
	}
	// What is under way arrives.
	for end := n.now + 2*transfer.rtt + time.Second; n.Len() > 0 && n.events[0].at < end; {
		n.step()
	}
	for _, end := range n.ends {
		end.Close()
	}
	return &n.found
}

func (n *network) send(t *testing.T, accepted tcpip.Endpoint) {
	zeros := make([]byte, 40*segment)
	for left := n.transfer.object; left > 0; {
		size := min(left, len(zeros))
		written, err := accepted.Write(bytes.NewReader(zeros[:size]), tcpip.WriteOptions{})
		if err != nil || int(written) != size {
			t.Fatal(written, err)
		}
		left -= size
	}
}

func must(t *testing.T, err any) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Makes the transfers of the file $TRANSFERS, one a line, and writes a line for each to $FOUND.
func TestTransfers(t *testing.T) {
	if os.Getenv("TRANSFERS") == "" {
		t.Skip("TRANSFERS names no file")
	}
	file, err := os.Open(os.Getenv("TRANSFERS"))
	must(t, err)
	defer file.Close()
	out, err := os.Create(os.Getenv("FOUND"))
	must(t, err)
	defer out.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one transfer
		var microseconds int64
		var lost string
		_, err := fmt.Sscan(lines.Text(), &one.controller, &one.bitsPerSecond, &microseconds, &one.buffer,
			&one.bytes, &one.object, &lost)
		must(t, err)
		one.rtt = time.Duration(microseconds) * time.Microsecond
		one.lost = map[int]bool{}
		for _, number := range strings.Split(lost, ",") {
			if at, err := strconv.Atoi(number); err == nil {
				one.lost[at] = true
			}
		}
		_, err = fmt.Fprintln(out, run(t, &one))
		must(t, err)
	}
}
