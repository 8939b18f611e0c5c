package freeport

import (
	"net"
	"strconv"
)

func reserve(port int) (net.Listener, error) {
	return net.Listen("unix", "@ossl-freeport-"+strconv.Itoa(port))
}
