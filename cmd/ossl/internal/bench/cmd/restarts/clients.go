//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
)

// An mqttClient publishes to a topic of its own, to which it has subscribed: MQTT 3.1.1.
type mqttClient struct {
	conn  io.ReadWriter
	topic string
}

func dialMQTT(conn net.Conn, number int) (client, error) {
	c := &mqttClient{conn, fmt.Sprintf("restarts/%d", number)}
	name := fmt.Sprintf("client-%d", number)
	connect := append(text("MQTT"), 4, 2, 0, 60) // the version, a clean session, 60 s
	if err := c.send(0x10, append(connect, text(name)...)); err != nil {
		return nil, err
	}
	if kind, body, err := c.receive(); err != nil || kind != 0x20 || len(body) != 2 || body[1] != 0 {
		return nil, fmt.Errorf("CONNACK %x %x, %w", kind, body, err)
	}
	if err := c.send(0x82, append(append([]byte{0, 1}, text(c.topic)...), 0)); err != nil {
		return nil, err
	}
	if kind, body, err := c.receive(); err != nil || kind != 0x90 {
		return nil, fmt.Errorf("SUBACK %x %x, %w", kind, body, err)
	}
	return c, nil
}

func (c *mqttClient) exchange(n int) error {
	message := append(text(c.topic), fmt.Sprintf("message %d", n)...)
	if err := c.send(0x30, message); err != nil {
		return err
	}
	if kind, body, err := c.receive(); err != nil || kind != 0x30 || !bytes.Equal(body, message) {
		return fmt.Errorf("PUBLISH %x %q, %w", kind, body, err)
	}
	return nil
}

// text returns a text with its length.
func text(s string) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...) }

// send sends a packet of less than 128 bytes.
func (c *mqttClient) send(kind byte, body []byte) error {
	_, err := c.conn.Write(append([]byte{kind, byte(len(body))}, body...))
	return err
}

func (c *mqttClient) receive() (kind byte, body []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, head[1])
	_, err = io.ReadFull(c.conn, body)
	return head[0], body, err
}

// A webSocket is one that a client has: RFC 6455.
type webSocket struct {
	conn   io.Writer
	reader *bufio.Reader
	number int
}

const webSocketKey = "dGhlIHNhbXBsZSBub25jZQ=="

func dialWebSocket(conn net.Conn, number int) (client, error) {
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+webSocketKey+"\r\n\r\n")
	if err != nil {
		return nil, err
	}
	c := &webSocket{conn, bufio.NewReader(conn), number}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, err
	}
	if accept := resp.Header.Get("Sec-WebSocket-Accept"); resp.StatusCode != 101 || accept != acceptKey(webSocketKey) {
		return nil, fmt.Errorf("%s, accept %q", resp.Status, accept)
	}
	return c, nil
}

func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (c *webSocket) exchange(n int) error {
	message := fmt.Appendf(nil, "client %d, message %d", c.number, n)
	mask := [4]byte{1, 2, 3, 4}
	frame := append([]byte{0x82, 0x80 | byte(len(message))}, mask[:]...)
	for i, b := range message {
		frame = append(frame, b^mask[i%4])
	}
	if _, err := c.conn.Write(frame); err != nil {
		return err
	}
	if got, err := readMessage(c.reader); err != nil || !bytes.Equal(got, message) {
		return fmt.Errorf("%q, %w", got, err)
	}
	return nil
}

// readMessage reads a frame of less than 126 bytes.
func readMessage(r io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	var mask [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, mask[:]); err != nil {
			return nil, err
		}
	}
	message := make([]byte, head[1]&0x7f)
	_, err := io.ReadFull(r, message)
	for i := range message {
		message[i] ^= mask[i%4]
	}
	return message, err
}

// listenWebSocket serves WebSockets that send back each message.
func listenWebSocket() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Accept: "+acceptKey(r.Header.Get("Sec-WebSocket-Key"))+"\r\n\r\n")
		for err == nil {
			var message []byte
			if message, err = readMessage(rw); err == nil {
				_, err = conn.Write(append([]byte{0x82, byte(len(message))}, message...))
			}
		}
	}))
	return l, nil
}
