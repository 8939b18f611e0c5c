// Package freeport chooses ports for servers that can't say which one the kernel gave them.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

var (
	mu    sync.Mutex
	taken = map[int]net.Listener{} // what keeps a port from other processes; nil where nothing can
)

// Take returns a TCP port of 127.0.0.1 on which nothing listens. Neither Take nor the kernel gives it to
// anybody else while this process runs: it is below the ports of programs that ask for any, and on Linux
// an abstract socket of its name keeps other processes from taking it.
func Take() (port int, err error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		port = 10_000 + rand.IntN(20_000)
		if _, ok := taken[port]; ok {
			continue
		}
		var hold net.Listener
		if hold, err = reserve(port); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			if hold != nil {
				hold.Close()
			}
			continue
		}
		taken[port] = hold
		return port, l.Close()
	}
	return 0, errors.Join(errors.New("freeport: no port of 127.0.0.1 from 10000 to 29999 is free"), err)
}
