// Command lines serves a line protocol, and replaces itself three times while its first process sends
// lines on 20 connections. docs/HANDOVER.md is the guide.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/handover"
)

var (
	ctx, psk = context.Background(), &ossl.PSK{Identity: []byte("example"), Key: []byte("a real one is random, and secret")}
	tls      = must(ossl.NewContext(nil, ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return psk, nil }),
		ossl.WithPSKLookup(func(context.Context, []byte) (*ossl.PSK, error) { return psk, nil })))
	commands = make(chan string)
)

func main() {
	s := &handover.Server{Context: tls, Serve: serve}
	if listeners := must(s.Inherit(ctx)); listeners != nil {
		obey(s, listeners)
		return
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	go s.Accept(l)
	go obey(s, []net.Listener{l})
	conns, processes, n := [20]*ossl.Conn{}, map[string]bool{}, 0
	for command := "hello"; len(processes) < 4; n++ {
		conn, process := &conns[(n-len(processes))%len(conns)], ""
		if *conn == nil {
			*conn = must(tls.Dial("tcp", l.Addr().String()))
		}
		fmt.Fprintln(*conn, command, n)
		must(fmt.Fscanf(*conn, fmt.Sprintf("%%s %s %d\n", command, n), &process)) // the answer
		if command = "hello"; !processes[process] {
			processes[process], command = true, "upgrade"
		}
	}
	fmt.Fprintln(conns[0], "stop")
	fmt.Println(n, "lines on", len(conns), "connections were answered by", len(processes), "processes")
}

func obey(s *handover.Server, listeners []net.Listener) {
	if <-commands == "upgrade" {
		must(s.Replace(ctx, exec.Command("/proc/self/exe"), listeners...))
	}
}

// serve answers lines. It returns the bytes that it has read and not answered.
func serve(conn *ossl.Conn, data []byte) []byte {
	for in := bufio.NewReader(io.MultiReader(strings.NewReader(string(data)), conn)); ; {
		line, err := in.ReadString('\n')
		if err == nil {
			_, err = fmt.Fprint(conn, os.Getpid(), " ", line)
		}
		if err != nil {
			rest, _ := in.Peek(in.Buffered())
			return append([]byte(line), rest...)
		}
		if command := strings.Fields(line)[0]; command != "hello" {
			commands <- command
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
