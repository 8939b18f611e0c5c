package redisstore_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/session/redisstore"
)

var failures = flag.Bool("failures", false, "kill nodes of clusters, which take their time to notice")

func needFailures(t *testing.T) {
	t.Helper()
	if !*failures {
		t.Skip("takes long: ci/redis runs it, with -failures")
	}
}

const (
	masters      = 3
	clusterSlots = 16384
)

// A cluster is three Redis processes that share the slots, and a replica of the first.
type cluster struct {
	t     *testing.T
	nodes []*server // the last is the first's replica
}

// startCluster does the same as redis-cli --cluster create. A node that doesn't answer for timeout
// is taken for dead.
func startCluster(t *testing.T, timeout time.Duration) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var direct []*redis.Client
	for range masters + 1 {
		s := newServer(t)
		port, bus := clusterPorts(t)
		s.addr = net.JoinHostPort("127.0.0.1", port)
		s.args = []string{"--port", port, "--cluster-port", bus, "--bind", "127.0.0.1", "--cluster-enabled", "yes",
			"--cluster-node-timeout", strconv.FormatInt(timeout.Milliseconds(), 10), "--cluster-replica-validity-factor", "0",
			"--repl-diskless-sync-delay", "0"}
		s.start()
		c.nodes = append(c.nodes, s)
		client := redis.NewClient(&redis.Options{Addr: s.addr})
		t.Cleanup(func() { client.Close() })
		direct = append(direct, client)
	}
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range direct {
		check(node.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		if i < masters {
			check(node.ClusterAddSlotsRange(ctx, i*clusterSlots/masters, (i+1)*clusterSlots/masters-1).Err())
		}
		_, port, _ := net.SplitHostPort(c.nodes[0].addr)
		check(node.Do(ctx, "cluster", "meet", "127.0.0.1", port, c.nodes[0].args[3]).Err())
	}
	says := func(what string, node *redis.Client, wanted ...string) {
		t.Helper()
		eventually(t, what, func() bool {
			info := node.ClusterInfo(ctx).Val() + node.Info(ctx, "replication").Val()
			for _, w := range wanted {
				if !strings.Contains(info, w) {
					return false
				}
			}
			return true
		})
	}
	for _, node := range direct {
		says("the nodes to meet", node, "cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d\r", len(direct)))
	}
	first, err := direct[0].Do(ctx, "cluster", "myid").Text()
	check(err)
	check(direct[masters].ClusterReplicate(ctx, first).Err())
	says("the replica", direct[masters], "master_link_status:up")
	says("the replica", direct[0], "state=online")
	return c
}

// nextPort begins at a random port, since other programs under test choose ports at the same time,
// and returns none twice.
var nextPort = func() *atomic.Uint32 { n := new(atomic.Uint32); n.Store(rand.Uint32N(20000)); return n }()

// clusterPorts returns two ports that were free a moment ago: a cluster's nodes can't leave the
// choice to the system. They are below the range that systems choose ports from; otherwise another
// test's connection could get one before a node has it, or while the node restarts.
func clusterPorts(t *testing.T) (port, bus string) {
	t.Helper()
	var ports [2]string
	for i := range ports {
		var l net.Listener
		var err error
		for range 100 {
			ports[i] = strconv.Itoa(12000 + int(nextPort.Add(1)%20000))
			if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", ports[i])); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	return ports[0], ports[1]
}

// addrs returns the addresses that clients connect to first.
func (c *cluster) addrs() string {
	var addrs []string
	for _, n := range c.nodes[:masters] {
		addrs = append(addrs, n.addr)
	}
	return strings.Join(addrs, ",")
}

// TestCluster: everything works if keys are spread over the nodes of a cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 15*time.Second)
	ctx := t.Context()
	client, _ := newClient(t, cluster.addrs())
	a, b := newStore(t, client, patient), newStore(t, client, patient)
	const n = 300
	for i := range n {
		if err := a.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, a)
	for i := range masters {
		node, _ := cluster.nodes[i].client()
		if size := node.DBSize(ctx).Val(); size == 0 {
			t.Errorf("node %d has none of %d sessions", i, n)
		}
	}
	for i := range n {
		switch i % 3 {
		case 0:
			if err := a.Remove(ctx, id(i)); err != nil {
				t.Fatal(err)
			}
		case 1:
			if got, err := b.Get(ctx, id(i), true); err != nil || !bytes.Equal(got, value(i)) {
				t.Fatalf("take %d: %q, %v", i, got, err)
			}
		}
	}
	flushed(t, a)
	for i := range n {
		got, err := b.Get(ctx, id(i), false)
		if err != nil || (got != nil) != (i%3 == 2) || got != nil && !bytes.Equal(got, value(i)) {
			t.Fatalf("get %d: %q, %v", i, got, err)
		}
	}
	for _, s := range []*redisstore.Store{a, b} {
		if st := s.Stats(); st.PutsDropped != 0 || st.RemovesLost != 0 || st.Errors != 0 || st.BreakerOpens != 0 {
			t.Errorf("%+v", st)
		}
	}
	for i := range 2 {
		keys, err := redisstore.NewKeys(client, calmKeys)
		if err != nil {
			t.Fatal(err)
		}
		if err := keys.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		if st := keys.Stats(); st.Published != uint64(1-i) {
			t.Errorf("member %d: %+v", i, st)
		}
	}
}

// TestClusterNodeGone kills a node of a cluster under a fleet: this costs only full handshakes.
// When its replica has taken its place, sessions are resumed as before, and ticket keys rotated.
func TestClusterNodeGone(t *testing.T) {
	needFailures(t)
	if _, err := ossl.Library(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	cluster := startCluster(t, time.Second)
	text, roots := certificate(t)
	var members []*process
	type way struct {
		addrs   []string
		clients map[string]func(net.Conn) client
	}
	ways := map[string]*way{}
	for _, how := range []string{"tickets", "ids"} {
		ways[how] = &way{clients: fleetClients(how, roots)}
	}
	for range 2 {
		m := startProcess(t, cluster.addrs(), certificateEnv+"="+text)
		members = append(members, m)
		for how, w := range ways {
			w.addrs = append(w.addrs, m.ask("serve %s", how))
		}
	}
	agree := func() (key string, ok bool) {
		key = members[0].ask("seals")
		return key, key != "none" && key == members[1].ask("seals")
	}
	eventually(t, "all members to seal with one key", func() bool { _, ok := agree(); return ok })

	n := 0
	visits := func() (all bool) { // each client once, the next time with the other member
		n++
		all = true
		for _, w := range ways {
			for _, dial := range w.clients {
				all = call(t, w.addrs[n%len(w.addrs)], dial) && all
			}
		}
		for _, m := range members {
			m.ask("flush")
		}
		return all
	}
	inARow := func() bool {
		for range 4 {
			if !visits() {
				return false
			}
		}
		return true
	}
	eventually(t, "sessions to be resumed", inARow)
	before, _ := agree()
	cluster.nodes[0].kill()
	for range 5 {
		visits() // which fails the test if a handshake does
	}
	eventually(t, "sessions to be resumed again", inARow)
	eventually(t, "a new ticket key", func() bool { now, ok := agree(); return ok && now != before })
}

// TestClusterDown: a cluster that has lost a node for good answers with errors, or not at all. In
// both cases calls end in time.
func TestClusterDown(t *testing.T) {
	needFailures(t)
	t.Parallel()
	cluster := startCluster(t, time.Second)
	ctx := t.Context()
	client, _ := newClient(t, cluster.addrs())
	s := newStore(t, client, redisstore.Config{Timeout: 250 * time.Millisecond, Failures: 1 << 20, Cooldown: 50 * time.Millisecond})
	const n = 100
	for i := range n {
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, s)
	cluster.nodes[masters].kill()
	cluster.nodes[0].kill()
	for _, left := range cluster.nodes[1:masters] {
		node, _ := left.client()
		eventually(t, "the cluster to be down", func() bool {
			return strings.Contains(node.ClusterInfo(ctx).Val(), "cluster_state:fail")
		})
	}
	for i := range n { // they must not come back
		if err := s.Remove(ctx, id(i)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(ctx, id(i), false); got != nil || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	cluster.nodes[0].start() // without its data
	fresh := newStore(t, client, patient)
	eventually(t, "removals to be done", func() bool { return s.Stats().Queued == 0 })
	for i := range n {
		eventually(t, "the cluster to answer", func() bool {
			got, err := fresh.Get(ctx, id(i), false)
			if got != nil {
				t.Fatalf("session %d, which was removed, is back", i)
			}
			return err == nil
		})
	}
	if st := s.Stats(); st.RemovesLost != 0 {
		t.Errorf("%+v", st)
	}
}

// TestClusterInPart: the remaining nodes of a cluster get their writes, though removals wait for a
// node that is gone.
func TestClusterInPart(t *testing.T) {
	needFailures(t)
	t.Parallel()
	cluster := startCluster(t, time.Second)
	ctx := t.Context()
	for _, n := range cluster.nodes {
		node, _ := n.client()
		if err := node.ConfigSet(ctx, "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	client, _ := newClient(t, cluster.addrs())
	s := newStore(t, client, redisstore.Config{Timeout: patient.Timeout, Failures: 1 << 20, Cooldown: time.Millisecond})
	cluster.nodes[masters].kill()
	cluster.nodes[0].kill()
	const n = 300
	for i := range n {
		if err := s.Remove(ctx, id(n+i)); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	var st redisstore.Stats // at the time they are done: repeated attempts will open the breaker
	eventually(t, "all writes but removals from the node that is gone", func() bool {
		st = s.Stats()
		return st.Puts+st.PutsDropped == n && st.Removes+uint64(st.Queued) == n && st.Queued < n/2
	})
	left := 0
	for _, alive := range cluster.nodes[1:masters] {
		node, _ := alive.client()
		left += int(node.DBSize(ctx).Val())
	}
	if st.BreakerOpens != 0 || st.Queued == 0 || st.Puts < n/2 || int(st.Puts) != left {
		t.Errorf("%d sessions are in the nodes that are left: %+v", left, st)
	}
}

// TestSentinel kills a master that a sentinel watches: the store continues with the replica.
func TestSentinel(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var nodes []*server
	for i := range 2 {
		s := newServer(t)
		port, _ := clusterPorts(t)
		s.addr = net.JoinHostPort("127.0.0.1", port)
		s.args = []string{"--port", port, "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"}
		if i > 0 {
			host, port, _ := net.SplitHostPort(nodes[0].addr)
			s.args = append(s.args, "--replicaof", host+" "+port)
		}
		s.start()
		nodes = append(nodes, s)
	}
	sentinel := newServer(t)
	port, _ := clusterPorts(t)
	sentinel.addr = net.JoinHostPort("127.0.0.1", port)
	sentinel.watch(nodes[0].addr)

	client := redisstore.NewClient(redis.UniversalOptions{Addrs: []string{sentinel.addr}, MasterName: "sessions"})
	t.Cleanup(func() { client.Close() })
	s := newStore(t, client, redisstore.Config{Cooldown: 50 * time.Millisecond})
	other, _ := nodes[1].client()
	stored := func(i int) bool {
		if err := s.Put(ctx, id(i), value(i), in(time.Hour)); err != nil {
			if !errors.Is(err, redisstore.ErrUnavailable) {
				t.Fatal(err)
			}
			return false
		}
		flushed(t, s)
		got, err := s.Get(ctx, id(i), false)
		return err == nil && bytes.Equal(got, value(i))
	}
	eventually(t, "a session to be stored", func() bool { return stored(1) })
	eventually(t, "the replica to have it", func() bool { return other.DBSize(ctx).Val() == 1 })
	eventually(t, "the sentinel to know the replica", func() bool {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: sentinel.addr})
		defer sentinel.Close()
		replicas, err := sentinel.Replicas(ctx, "sessions").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	nodes[0].kill()
	eventually(t, "a session to be stored with the replica", func() bool { return stored(2) })
	if got, err := newStore(t, client, patient).Get(ctx, id(1), false); err != nil || !bytes.Equal(got, value(1)) {
		t.Errorf("%q, %v", got, err)
	}
}

// watch starts a server as a sentinel.
func (s *server) watch(master string) {
	s.t.Helper()
	_, own, _ := net.SplitHostPort(s.addr)
	host, port, _ := net.SplitHostPort(master)
	conf := filepath.Join(s.dir, "sentinel.conf")
	text := strings.Join([]string{
		"port " + own, "bind 127.0.0.1", "dir " + strconv.Quote(s.dir),
		"sentinel monitor sessions " + host + " " + port + " 1",
		"sentinel down-after-milliseconds sessions 500",
		"sentinel failover-timeout sessions 2000",
	}, "\n")
	if err := os.WriteFile(conf, []byte(text+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.startUntil("+monitor master", conf, "--sentinel")
}
