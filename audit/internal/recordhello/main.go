// Recordhello prints the first ClientHello that a program sends, as an entry of audit/clients.json:
//
//	go run ./internal/recordhello -name "curl 8.5, OpenSSL 3.5" curl -sk https://localhost:PORT/
//
// It replaces PORT by the port of its own listener, runs the command, and kills it.
package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
)

func main() {
	log.SetFlags(0)
	name := flag.String("name", "", "the client's `name`")
	source := flag.String("source", "", "where the hello is from; the command if empty")
	common := flag.Bool("common", false, "a public server should serve the client")
	timeout := flag.Duration("timeout", 30*time.Second, "wait at most so long")
	flag.Parse()
	if *name == "" || flag.NArg() == 0 {
		log.Fatal("usage: recordhello -name NAME [-source TEXT] [-common] PROGRAM ARGUMENT…PORT…")
	}
	packet, err := record(flag.Args(), *timeout)
	if err != nil {
		log.Fatal("recordhello: ", err)
	}
	entry, err := describe(packet)
	if err != nil {
		log.Fatal("recordhello: ", err)
	}
	entry["name"], entry["source"], entry["common"] = *name, *source, *common
	if *source == "" {
		entry["source"] = "recorded from " + strings.Join(flag.Args(), " ")
	}
	b, err := json.Marshal(entry)
	if err != nil {
		log.Fatal("recordhello: ", err)
	}
	fmt.Println(string(b))
}

// record runs a command, and returns the records of its first ClientHello.
func record(args []string, timeout time.Duration) ([]byte, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(timeout))
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "PORT", port)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil, err
		}
		conn.SetDeadline(time.Now().Add(timeout))
		packet, err := readHello(conn)
		conn.Close()
		if err == nil {
			return packet, nil
		}
	}
}

// readHello reads records until the message in them is complete.
func readHello(conn net.Conn) (packet []byte, err error) {
	message, length := 0, 4
	for message < length {
		header := make([]byte, 5)
		if _, err := io.ReadFull(conn, header); err != nil {
			return nil, err
		}
		if header[0] != 22 {
			return nil, errors.New("not a handshake record")
		}
		body := make([]byte, binary.BigEndian.Uint16(header[3:]))
		if _, err := io.ReadFull(conn, body); err != nil {
			return nil, err
		}
		if len(packet) == 0 && len(body) >= 4 {
			length = 4 + int(body[1])<<16 + int(body[2])<<8 + int(body[3])
		}
		packet = append(append(packet, header...), body...)
		message += len(body)
	}
	return packet, nil
}

// describe returns the entry for a ClientHello.
func describe(packet []byte) (map[string]any, error) {
	var message []byte
	for b := packet; len(b) >= 5; b = b[5+binary.BigEndian.Uint16(b[3:]):] {
		message = append(message, b[5:5+binary.BigEndian.Uint16(b[3:])]...)
	}
	h, err := hello.ParseClientHello(message)
	if err != nil {
		return nil, err
	}
	e := map[string]any{
		"record_version": hello.VersionName(binary.BigEndian.Uint16(packet[1:])), "version": hello.VersionName(h.Version),
		"suites": names(h.Suites, hello.SuiteName), "extensions": names(h.Order, hello.ExtensionName),
		"session_id": len(h.SessionID),
	}
	put := func(key string, values []string) {
		if len(values) > 0 {
			e[key] = values
		}
	}
	put("groups", names(h.Groups, hello.GroupName))
	put("signatures", names(h.Signatures, hello.SchemeName))
	put("versions", names(h.Versions, hello.VersionName))
	put("alpn", h.ALPN)
	put("compress_certificate", names(h.CompressCertificate, func(v uint16) string {
		return map[uint16]string{1: "zlib", 2: "brotli", 3: "zstd"}[v]
	}))
	var shares []uint16
	for _, s := range h.KeyShares {
		shares = append(shares, s.Group)
	}
	put("shares", names(shares, hello.GroupName))
	if h.Points != nil {
		e["points"] = hex.EncodeToString(h.Points)
	}
	if h.PSKModes != nil {
		e["psk_modes"] = hex.EncodeToString(h.PSKModes)
	}
	data := map[string]string{}
	for _, x := range h.Extra {
		if hello.ExtensionName(x.Type) == "padding" {
			e["pad"] = len(message)
			continue
		}
		data[hello.ExtensionName(x.Type)] = hex.EncodeToString(x.Data)
	}
	if len(data) > 0 {
		e["data"] = data
	}
	return e, nil
}

func names(values []uint16, name func(uint16) string) (all []string) {
	for _, v := range values {
		all = append(all, name(v))
	}
	return all
}
