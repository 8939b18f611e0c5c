package grpctls_test

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc/grpclog"
)

// fatalLog is a panic with the text of a fatal log entry of gRPC. The entry itself would end the
// process, and the remaining tests with it.
type fatalLog string

// panicLog keeps gRPC quiet, which logs every failed handshake, and turns fatal entries into
// panics.
type panicLog struct{ grpclog.LoggerV2 }

func (panicLog) FatalDepth(_ int, args ...any) {
	panic(fatalLog(strings.TrimSpace(fmt.Sprintln(args...))))
}
func (panicLog) ErrorDepth(_ int, args ...any)   {}
func (panicLog) WarningDepth(_ int, args ...any) {}
func (panicLog) InfoDepth(_ int, args ...any)    {}

func init() { grpclog.SetLoggerV2(panicLog{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)}) }
