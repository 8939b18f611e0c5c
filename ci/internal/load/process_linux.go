package load

import (
	"errors"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Processes returns a process and its children, which come last.
func Processes(pid int) []string {
	name := strconv.Itoa(pid)
	children, _ := os.ReadFile("/proc/" + name + "/task/" + name + "/children")
	return append([]string{name}, strings.Fields(string(children))...)
}

var libsslMapping = regexp.MustCompile(`(?m)/\S*/libssl\.so\S*$`)

// Libssl returns the file of the libssl that a process uses.
func Libssl(pid string) (string, error) {
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return "", err
	}
	if file := libsslMapping.Find(maps); file != nil {
		return string(file), nil
	}
	return "", errors.New("the server uses no libssl")
}

// FreePort returns a port of 127.0.0.1 that nobody had a moment ago.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
