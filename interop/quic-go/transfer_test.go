// Transfers by unmodified quic-go in virtual time, for docs/records/quic-go.md.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/quic-go/quic-go/testutils/simnet"
)

const (
	// IPv4 and UDP.
	headers = 28
	// quic-go's default. With another one, its pacer and its controller differ on the size of a packet
	// until path MTU discovery, and wait for each other without a timer, for ever in virtual time.
	packet = 1280
	// Of connection IDs: the model's.
	idLength = 8
	// Open from the beginning, as in the model.
	window = 4_000_000
	// Packets with data are larger, those with acks alone smaller.
	leastData = 200
)

// One path and object.
type transfer struct {
	// Its only one, Reno.
	controller    string
	bitsPerSecond int64
	rtt           time.Duration
	buffer, bytes int
	object        uint64
	// Numbers of the packets that get lost, of those that leave the link.
	lost map[int]bool
}

// What is measured of it.
type found struct {
	mutex     sync.Mutex
	start     time.Time
	completed time.Duration
	drops     int
	peak      int
	exit      time.Duration
	// Packets with data that entered the path, and the window, by round trip.
	began   time.Time
	sent    []int
	windows []int
	window  int
}

func (f *found) round(rtt time.Duration) int {
	round := int(time.Since(f.began) / rtt)
	for len(f.sent) <= round {
		f.sent = append(f.sent, 0)
		f.windows = append(f.windows, f.window)
	}
	return round
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

// A link of constant rate behind a drop-tail buffer. The packet being sent is not in the buffer.
type link struct {
	transfer *transfer
	freeAt   time.Time
	begins   []time.Time
	sizes    []int
	waiting  int
}

// The time until the packet's last bit has left, or false if there is no room.
func (l *link) push(size int) (time.Duration, bool) {
	now := time.Now()
	for len(l.begins) > 0 && !l.begins[0].After(now) {
		l.waiting -= l.sizes[0]
		l.begins, l.sizes = l.begins[1:], l.sizes[1:]
	}
	if l.freeAt.After(now) {
		if len(l.begins) >= l.transfer.buffer || l.waiting+size > l.transfer.bytes {
			return 0, false
		}
		l.begins, l.sizes = append(l.begins, l.freeAt), append(l.sizes, size)
		l.waiting += size
	} else {
		l.freeAt = now
	}
	l.freeAt = l.freeAt.Add(time.Duration(int64(size) * 8 * int64(time.Second) / l.transfer.bitsPerSecond))
	return l.freeAt.Sub(now), true
}

// Both directions, between simnet's nodes, which add the propagation delay.
type path struct {
	transfer *transfer
	found    *found
	client   *net.UDPAddr
	nodes    simnet.PerfectRouter
	down, up link
	// Packets that left the link down.
	left int
}

func (p *path) AddNode(address net.Addr, node simnet.PacketReceiver) { p.nodes.AddNode(address, node) }

func (p *path) SendPacket(sent simnet.Packet) error {
	p.found.mutex.Lock()
	defer p.found.mutex.Unlock()
	over, isDown := &p.up, sent.To.String() == p.client.String()
	if isDown {
		over = &p.down
		if !p.found.began.IsZero() && len(sent.Data) > leastData {
			p.found.sent[p.found.round(p.transfer.rtt)]++
		}
	}
	after, isTaken := over.push(len(sent.Data) + headers)
	if isDown {
		p.found.peak = max(p.found.peak, len(over.begins))
	}
	if !isTaken {
		if isDown {
			p.found.drops++
		}
		return nil
	}
	if isDown {
		p.left++
		if p.transfer.lost[p.left-1] {
			return nil
		}
	}
	time.AfterFunc(after, func() { _ = p.nodes.SendPacket(sent) })
	return nil
}

// Reads what quic-go logs of its controller.
type recorder struct{ path *path }

func (r recorder) AddProducer() qlogwriter.Recorder { return r }
func (r recorder) Close() error                     { return nil }

func (r recorder) RecordEvent(event qlogwriter.Event) {
	f := r.path.found
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch event := event.(type) {
	case qlog.MetricsUpdated:
		if event.CongestionWindow > 0 {
			f.window = event.CongestionWindow
		}
		if !f.began.IsZero() {
			f.windows[f.round(r.path.transfer.rtt)] = f.window
		}
	case qlog.CongestionStateUpdated:
		isEnd := event.State == qlog.CongestionStateCongestionAvoidance || event.State == qlog.CongestionStateRecovery
		if isEnd && f.exit == 0 {
			f.exit = time.Since(f.start)
		}
	}
}

func run(t *testing.T, transfer *transfer, identity tls.Certificate) *found {
	result := &found{start: time.Now()}
	client := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 5000}
	server := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}
	between := &path{
		transfer: transfer, found: result, client: client,
		down: link{transfer: transfer}, up: link{transfer: transfer},
	}
	network := &simnet.Simnet{Router: between}
	whole := simnet.LinkSettings{MTU: 1500}
	node := simnet.NodeBiDiLinkSettings{Downlink: whole, Uplink: whole, Latency: transfer.rtt / 2}
	here, there := network.NewEndpoint(client, node), network.NewEndpoint(server, node)
	must(t, network.Start())
	config := &quic.Config{
		InitialPacketSize: packet, DisablePathMTUDiscovery: true, MaxIdleTimeout: time.Hour,
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
	}
	traced := config.Clone()
	traced.Tracer = func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return recorder{between} }
	ends := [2]quic.Transport{{Conn: here, ConnectionIDLength: idLength}, {Conn: there, ConnectionIDLength: idLength}}
	names := []string{"transfer"}
	listener, err := ends[1].Listen(&tls.Config{Certificates: []tls.Certificate{identity}, NextProtos: names}, traced)
	must(t, err)
	go serve(listener, transfer, result)
	connection, err := ends[0].Dial(t.Context(), server, &tls.Config{InsecureSkipVerify: true, NextProtos: names}, config)
	must(t, err)
	stream, err := connection.OpenStreamSync(t.Context())
	must(t, err)
	must(t, binary.Write(stream, binary.BigEndian, transfer.object))
	must(t, stream.Close())
	read, err := io.Copy(io.Discard, stream)
	must(t, err)
	result.completed = time.Since(result.start)
	if uint64(read) != transfer.object {
		t.Fatalf("found %d bytes, expected %d", read, transfer.object)
	}
	must(t, connection.CloseWithError(0, ""))
	must(t, listener.Close())
	// What is under way arrives before the network ends.
	time.Sleep(2*transfer.rtt + time.Minute)
	for at := range ends {
		must(t, ends[at].Close())
	}
	must(t, here.Close())
	must(t, there.Close())
	must(t, network.Close())
	return result
}

func serve(listener *quic.Listener, transfer *transfer, result *found) {
	connection, err := listener.Accept(context.Background())
	if err != nil {
		return
	}
	stream, err := connection.AcceptStream(context.Background())
	if err != nil {
		return
	}
	var object uint64
	if binary.Read(stream, binary.BigEndian, &object) != nil {
		return
	}
	result.mutex.Lock()
	result.began = time.Now()
	result.round(transfer.rtt)
	result.mutex.Unlock()
	_, _ = stream.Write(make([]byte, object))
	_ = stream.Close()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func identity(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"headstart"}}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
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
	certificate := identity(t)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one transfer
		var microseconds int64
		var lost string
		_, err := fmt.Sscan(lines.Text(), &one.controller, &one.bitsPerSecond, &microseconds, &one.buffer, &one.bytes,
			&one.object, &lost)
		must(t, err)
		one.rtt = time.Duration(microseconds) * time.Microsecond
		one.lost = map[int]bool{}
		for _, number := range strings.Split(lost, ",") {
			if at, err := strconv.Atoi(number); err == nil {
				one.lost[at] = true
			}
		}
		synctest.Test(t, func(t *testing.T) {
			_, err := fmt.Fprintln(out, run(t, &one, certificate))
			must(t, err)
		})
	}
}
