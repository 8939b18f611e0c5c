//go:build cgo || ossl_nocgo

package records

import (
	"bytes"
	"slices"

	"github.com/ossl-go/ossl/internal/tlstest"
)

// These functions write operations of FuzzRecordPaths.

func opJoin(ops ...[]byte) []byte { return bytes.Join(ops, nil) }

func op16(n int) []byte { return []byte{byte(n >> 8), byte(n)} }

func opSize(n int) []byte {
	if n >= 1024 {
		n += longSizes
	}
	return op16(n)
}

func opBytes(b string) []byte { return append([]byte{byte(len(b))}, b...) }

func doData(n int) []byte { return append([]byte{opData}, opSize(n)...) }

func doSeal(typ byte, text string) []byte { return append([]byte{opSeal, typ}, opBytes(text)...) }

func doHandshake(text string) []byte { return doSeal(tlstest.TypeHandshake, text) }

func doAlert(level, alert byte) []byte {
	return doSeal(tlstest.TypeAlert, string([]byte{level, alert}))
}

func doClose() []byte { return doAlert(1, 0) }

func doPadded(typ byte, n, padding int) []byte {
	return opJoin([]byte{opPadded, typ}, opSize(n), opSize(padding))
}

// doUpdate sends a KeyUpdate; flags are 1 to continue under the old keys, 2 to use new keys without
// sending a KeyUpdate.
func doUpdate(request, flags byte) []byte { return []byte{opKeyUpdate, request, flags} }

func doInner(inner string) []byte { return append([]byte{opInner}, opBytes(inner)...) }

func doZeros(n int) []byte { return append([]byte{opZeros}, opSize(n)...) }

func doOuter(typ byte, text string) []byte { return append([]byte{opOuter, typ}, opBytes(text)...) }

func doRaw(typ byte, version, length int, body string) []byte {
	return opJoin([]byte{opRaw, typ}, op16(version), op16(length), opBytes(body))
}

func doGarbage(b string) []byte { return append([]byte{opGarbage}, opBytes(b)...) }

// The numbers of records count backwards from the last one.

func doMutate(which byte, at int, xor byte) []byte {
	return opJoin([]byte{opMutate, which}, op16(at), []byte{xor})
}

func doCut(which, n, front byte) []byte { return []byte{opCut, which, n, front} }

func doTwice(which byte) []byte { return []byte{opDuplicate, which} }

func doSwap(a, b byte) []byte { return []byte{opSwap, a, b} }

func doDrop(which byte) []byte { return []byte{opDrop, which} }

func doTimes(n byte, op []byte) []byte { return append([]byte{opRepeat, n - 1}, op...) }

func doFragments(typ, size byte, text string) []byte {
	return opJoin([]byte{opFragment, typ, size - 1}, opBytes(text))
}

func doLong(message byte, n, size int) []byte {
	return opJoin([]byte{opLong, message, byte(n >> 16)}, op16(n), op16(size-256))
}

func doMissing() []byte { return []byte{opMissing, tlstest.TypeApplicationData} }

const (
	seedTicket = "\x04\x00\x00\x13\x00\x00\x1c\x20\x01\x02\x03\x04\x01\x07\x00\x05hello\x00\x00"
	seedUpdate = "\x18\x00\x00\x01\x00"
)

var (
	firstData = doData(100)
	lastData  = opJoin(doData(50), doClose())
)

// seedData send data, alerts and records of other types.
var seedData = [][]byte{
	{},
	doClose(),
	opJoin(doData(1), doData(16384), doData(2), doClose(), doData(3)),
	doTimes(8, doData(16384)),
	opJoin(doTimes(40, doData(1)), doClose()),
	doData(16385),
	doTimes(16, doData(0)),
	doTimes(17, doData(0)),
	opJoin(doTimes(16, doData(0)), firstData, doTimes(16, doData(0)), lastData),
	doHandshake(""),
	doAlert(1, 90),
	doAlert(2, 90),
	doAlert(1, 100),
	doAlert(2, 40),
	doAlert(1, 40),
	doAlert(0, 0),
	doAlert(3, 40),
	opJoin(doAlert(1, 90), doHandshake("\x00\x00\x00\x00")),
	opJoin(doAlert(1, 90), doUpdate(1, 0)),
	opJoin(doData(5), doAlert(1, 90), doHandshake("\x18\x00")),
	doTimes(16, doAlert(1, 90)),
	doTimes(17, doAlert(1, 90)),
	doSeal(21, ""),
	doSeal(21, "\x02"),
	doSeal(21, "\x01\x5a\x02\x28"),
	doSeal(20, "\x01"),
	doSeal(0, "what"),
	doSeal(24, "what"),
	doSeal(99, ""),
}

// seedInner choose inner plaintexts, padding and outer types.
var seedInner = [][]byte{
	doPadded(23, 100, 1000),
	doPadded(23, 100, 16284),
	doPadded(23, 100, 16285),
	doPadded(23, 0, 16384),
	doPadded(22, 0, 10),
	doPadded(21, 2, 10),
	doZeros(0),
	doZeros(1),
	doZeros(16385),
	doZeros(16386),
	doInner("\x17"),
	doInner("data\x17\x00\x00"),
	doInner("\x00\x00\x16"),
	doOuter(21, "data"),
	doOuter(22, "data"),
	doOuter(20, "data"),
	doOuter(23, "data"),
}

// seedUpdates send KeyUpdates and tickets.
var seedUpdates = [][]byte{
	doUpdate(0, 0),
	doUpdate(1, 0),
	doUpdate(2, 0),
	doUpdate(0, 1),
	doUpdate(1, 1),
	doUpdate(0, 2),
	opJoin(doUpdate(1, 0), firstData, doUpdate(0, 0), firstData, doUpdate(1, 0), lastData),
	doTimes(16, doUpdate(1, 0)),
	opJoin(doTimes(16, doData(0)), doUpdate(2, 0)),
	opJoin(doTimes(16, doData(0)), doHandshake(seedTicket[:3]+"\x02\x00\x00")),
	doTimes(17, doUpdate(1, 0)),
	doTimes(17, doUpdate(0, 0)),
	doTimes(20, opJoin(doUpdate(1, 0))),
	doHandshake(seedUpdate + seedUpdate),
	doHandshake(seedUpdate + "\x04"),
	doHandshake("\x18\x00\x00\x01\x01" + seedUpdate),
	doHandshake("\x18\x00\x00\x00"),
	doHandshake("\x18\x00\x00\x02\x00\x00"),
	opJoin(doFragments(22, 1, seedUpdate), doUpdate(0, 2)),
	opJoin(doFragments(22, 2, "\x18\x00\x00\x01\x01"), doUpdate(0, 2)),
	doFragments(22, 3, seedTicket),
	doHandshake(seedTicket),
	doHandshake(seedTicket + seedTicket + seedTicket[:9]),
	doTimes(17, doHandshake(seedTicket)),
	doHandshake(seedTicket[:3] + "\x02\x00\x00"),
	doHandshake("\x04\x00\x00\x0d" + "\x00\x00\x1c\x20\x01\x02\x03\x04\x00\x00\x00\x00\x00"),
	doHandshake("\x04\x00\x00\x16" + "\x00\x00\x1c\x20\x01\x02\x03\x04\x00\x00\x01\x07\x00\x08" +
		"\x00\x63\x00\x00\x00\x63\x00\x00"),
}

// seedMessages send other handshake messages, and parts of messages.
var seedMessages = [][]byte{
	doHandshake("\x18\x00"),
	opJoin(doHandshake("\x18\x00"), doAlert(1, 90)),
	opJoin(doHandshake("\x18\x00"), doAlert(2, 40)),
	opJoin(doHandshake("\x18\x00"), doClose()),
	opJoin(doHandshake("\x18\x00"), doSeal(20, "\x01")),
	opJoin(doHandshake("\x18\x00"), doRaw(20, 0x303, 1, "\x01")),
	opJoin(doHandshake("\x18\x00"), doSeal(23, "")),
	opJoin(doHandshake("\x18\x00"), firstData, doMutate(0, 20, 1)), // damaged, rather than out of place
	doHandshake("\x00\x00\x00\x00"),
	doHandshake("\x00\x00\x00\x01\x00"),
	doHandshake("\x01\x00\x00\x00"),
	doHandshake("\x02\x00\x00\x00"),
	doHandshake("\x0b\x00\x00\x00"),
	doHandshake("\x0d\x00\x00\x0b\x00\x00\x08\x00\x0d\x00\x04\x00\x02\x04\x03"),
	doHandshake("\x14\x00\x00\x0c123456789012"),
	doHandshake("\x63\x00\x00\x00"),
	doHandshake("\x04\xff\xff\xff\x00"),
	doLong(4, 65536, 16384),
	doLong(4, 65537, 16384),
	doLong(11, 65536, 1000),
	doLong(11, 65537, 16384),
	doLong(11, 262145, 16384),
	doLong(99, 65536, 16384),
}

// seedHeaders send headers of their own, without sealing.
var seedHeaders = [][]byte{
	doRaw(20, 0x303, 1, "\x01"),
	doRaw(20, 0x303, 2, "\x01\x01"),
	doRaw(20, 0x303, 0, ""),
	doRaw(20, 0x303, 17000, ""),
	doRaw(21, 0x303, 2, "\x02\x28"),
	doRaw(21, 0x303, 2, "\x01\x00"),
	doRaw(22, 0x303, 4, "\x00\x00\x00\x00"),
	doRaw(23, 0x303, 4, "data"),
	doRaw(23, 0x303, 0, ""),
	doRaw(23, 0x303, 16640, "short"),
	doRaw(23, 0x303, 16641, "short"),
	doRaw(23, 0x303, 18432, "short"),
	doRaw(23, 0x303, 18433, "short"),
	doRaw(23, 0x301, 4, "data"),
	doRaw(23, 0x304, 4, "data"),
	doRaw(23, 0x203, 0xffff, "data"),
	doGarbage("GET / HTTP/1.1\r\n\r\n"),
	doGarbage("\x17\x03"),
}

// seedChanges change sealed records, omit them, or repeat them.
var seedChanges = [][]byte{
	opJoin(firstData, doMutate(0, 0, 2)),
	opJoin(firstData, doMutate(0, 0, 3)),
	opJoin(firstData, doMutate(0, 1, 4)),
	opJoin(firstData, doMutate(0, 2, 1)),
	opJoin(firstData, doMutate(0, 3, 1)),
	opJoin(firstData, doMutate(0, 4, 1)),
	opJoin(firstData, doMutate(0, 5, 1)),
	opJoin(firstData, doMutate(0, 14, 1)),
	opJoin(firstData, doMutate(0, 0xffff, 1)),
	opJoin(firstData, firstData, doMutate(1, 60, 0x80)),
	opJoin(firstData, doCut(0, 1, 0)),
	opJoin(firstData, doCut(0, 1, 1)),
	opJoin(firstData, doCut(0, 100, 0)),
	opJoin(firstData, doTwice(0)),
	opJoin(firstData, doData(10), doSwap(0, 1)),
	opJoin(firstData, doData(10), doData(20), doDrop(1)),
	doMissing(),
	opJoin(doClose(), firstData),
	opJoin(doTimes(3, doData(5)), doHandshake(seedTicket), doAlert(1, 90), doTimes(3, doData(5)), doUpdate(1, 0)),
}

// recordSeeds are programs that use every operation, each for both versions and for both roles,
// over all suites in turn.
func recordSeeds() (seeds [][]byte) {
	second := []byte{3, 4, 5, rareSuites, rareSuites + 1, rareSuites + 2, rareSuites + 3, rareSuites + 4} // of TLS 1.2
	lists := [][][]byte{seedData, seedInner, seedUpdates, seedMessages, seedHeaders, seedChanges}
	for i, ops := range slices.Concat(lists...) {
		for j, suite := range []byte{byte(i % 3), second[i%len(second)]} {
			for k, ends := range [][]byte{nil, lastData} {
				role := byte(i+j+k) & 1
				seeds = append(seeds, opJoin([]byte{suite, role | byte(i%128)<<1}, firstData, ops, ends))
			}
		}
	}
	return seeds
}
