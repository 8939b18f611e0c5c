package terminator_test

import (
	"slices"
	"strings"
)

const (
	hostField = "Host: localhost\r\n"
	getStart  = "GET / HTTP/1.1\r\n" + hostField
	postStart = "POST / HTTP/1.1\r\n" + hostField
	chunked   = "Transfer-Encoding: chunked\r\n"
	nothing   = "\r\n0\r\n\r\n" // the end of a header, and a body of no chunks
	// nextRequest follows each hostile request at once. Its answer shows that all of the hostile one
	// was seen.
	nextRequest = "GET /next HTTP/1.1\r\n" + hostField + "Connection: close\r\n\r\n"
)

// A hostileRequest is a request, and what must come of it. It is laxer of ossl to answer it, or to go on after it,
// if nginx doesn't: that needs a reason.
type hostileRequest struct {
	name, text string
	status     int
	goesOn     bool   // the connection stays open
	seen       string // by the backend: see seenOf
	laxer      string // why
}

var hostileRequests = []hostileRequest{
	// Framing: RFC 9112, section 6.
	{"length and coding", postStart + "Content-Length: 6\r\n" + chunked + nothing + "X", 400, false, "", ""},
	{"length and coding, and a request in the body", postStart + "Content-Length: 5\r\n" + chunked +
		"\r\n3\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"length and coding of HTTP/1.0", "POST / HTTP/1.0\r\n" + hostField + chunked +
		"Content-Length: 5\r\nConnection: keep-alive\r\n" + nothing, 400, false, "", ""},
	{"coding of HTTP/1.0", "POST / HTTP/1.0\r\n" + hostField + chunked + nothing, 400, false, "", ""},
	{"two codings", postStart + chunked + chunked + nothing, 501, false, "", ""},
	{"coding and none", postStart + chunked + "Transfer-Encoding: identity\r\n" + nothing, 501, false, "", ""},
	{"unknown coding", postStart + "Transfer-Encoding: xchunked\r\n" + nothing, 501, false, "", ""},
	{"coding in a list", postStart + "Transfer-Encoding: gzip, chunked\r\n" + nothing, 501, false, "", ""},
	{"coding with a parameter", postStart + "Transfer-Encoding: chunked;x=1\r\n" + nothing, 501, false, "", ""},
	{"coding in quotes", postStart + "Transfer-Encoding: \"chunked\"\r\n" + nothing, 501, false, "", ""},
	{"coding in capitals", postStart + "Transfer-Encoding: CHUNKED\r\n" + nothing, 200, true, `POST / ""`, ""},
	{"coding behind a tab", postStart + "Transfer-Encoding:\tchunked\r\n" + nothing, 200, true, `POST / ""`,
		"RFC 9110, section 5.5: a tab may stand before a value"},
	{"coding behind another character", postStart + "Transfer-Encoding: \x0bchunked\r\n" + nothing, 400, false, "", ""},
	{"coding folded", postStart + "Transfer-Encoding:\r\n chunked\r\n" + nothing, 400, false, "", ""},
	{"coding behind a line feed", postStart + "X: y\nTransfer-Encoding: chunked\r\n" + nothing, 200, true, `POST / "" X: y`, ""},
	{"coding with an underscore", postStart + "Transfer_Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 200, true, `POST / ""`, ""},
	{"space before colon", getStart + "Content-Length : 1\r\n\r\na", 400, false, "", ""},
	{"space before name", postStart + " Transfer-Encoding: chunked\r\n" + nothing, 400, false, "", ""},
	{"two lengths", postStart + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, false, "", ""},
	{"two equal lengths", postStart + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400, false, "", ""},
	{"lengths in a list", postStart + "Content-Length: 1, 1\r\n\r\na", 400, false, "", ""},
	{"signed length", postStart + "Content-Length: +1\r\n\r\na", 400, false, "", ""},
	{"negative length", postStart + "Content-Length: -1\r\n\r\n", 400, false, "", ""},
	{"hexadecimal length", postStart + "Content-Length: 0x1\r\n\r\na", 400, false, "", ""},
	{"empty length", postStart + "Content-Length: \r\n\r\n", 400, false, "", ""},
	{"length and NUL", postStart + "Content-Length: 1\x00\r\n\r\na", 400, false, "", ""},
	{"length beyond 64 bits", postStart + "Content-Length: 99999999999999999999\r\n\r\na", 400, false, "", ""},
	{"length with a zero", postStart + "Content-Length: 03\r\n\r\nabc", 200, true, `POST / "abc"`, ""},
	{"request in a body", getStart + "Content-Length: 28\r\n\r\nGET /smug HTTP/1.1\r\nX: y\r\n\r\n", 200, true,
		`GET / "GET /smug HTTP/1.1\r\nX: y\r\n\r\n"`, ""},
	{"length named by Connection", postStart + "Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc", 200, true,
		`POST / "abc"`, ""},
	{"coding named by Connection", postStart + "Connection: Transfer-Encoding\r\n" + chunked + nothing, 200, true, `POST / ""`, ""},
	{"chunk with a bare line end", postStart + chunked + "\r\n1;\n a\r\n0\r\n\r\n", 400, false, "", ""},
	{"chunks with line feeds", postStart + chunked + "\r\n3\nabc\n0\n\n", 400, false, "", ""},
	{"chunk of 0x", postStart + chunked + "\r\n0x3\r\nabc\r\n0\r\n\r\n", 400, false, "", ""},
	{"chunk of -3", postStart + chunked + "\r\n-3\r\nabc\r\n0\r\n\r\n", 400, false, "", ""},
	{"chunk beyond 64 bits", postStart + chunked + "\r\n100000000000000003\r\nabc\r\n0\r\n\r\n", 400, false, "", ""},
	{"chunk that is too long", postStart + chunked + "\r\n3\r\nabcXX0\r\n\r\n", 400, false, "", ""},
	{"chunk with an extension", postStart + chunked + "\r\n3;a=b\r\nabc\r\n0\r\n\r\n", 200, true, `POST / "abc"`, ""},
	{"forged trailer", postStart + chunked + "Trailer: X-Forwarded-For\r\n\r\n3\r\nabc\r\n0\r\nX-Forwarded-For: forged\r\n\r\n",
		200, true, `POST / "abc" Trailer: X-Forwarded-For`, ""},
	// Lines.
	{"large header", getStart + "X: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", 431, false, "", ""},
	{"many fields", getStart + strings.Repeat("X: y\r\n", 20<<10) + "\r\n", 431, false, "", ""},
	{"large line", "GET /" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\n" + hostField + "\r\n", 431, false, "", ""},
	{"folded line", getStart + "X: a\r\n Content-Length: 1\r\n\r\n", 400, false, "", ""},
	{"carriage return alone", getStart + "X: a\rContent-Length: 1\r\n\r\n", 400, false, "", ""},
	{"line feeds alone", "GET / HTTP/1.1\nHost: localhost\n\n", 200, true, `GET / ""`, ""},
	{"empty lines before", "\r\n\r\n" + getStart + "\r\n", 400, false, "", ""},
	{"NUL", getStart + "X: a\x00b\r\n\r\n", 400, false, "", ""},
	{"space in a name", getStart + "X Y: 1\r\n\r\n", 400, false, "", ""},
	{"no name", getStart + ": x\r\n\r\n", 400, false, "", ""},
	{"no colon", getStart + "XY\r\n\r\n", 400, false, "", ""},
	{"tabs in the first line", "GET\t/\tHTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"two spaces", "GET  / HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"no version", "GET /\r\n\r\n", 400, false, "", ""},
	{"version 1.2", "GET / HTTP/1.2\r\n" + hostField + "\r\n", 200, true, `GET / ""`, ""},
	{"version 2.0", "GET / HTTP/2.0\r\n" + hostField + "\r\n", 505, false, "", ""},
	{"wrong method", "G(T / HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"small letters", "get / HTTP/1.1\r\n" + hostField + "\r\n", 200, true, `get / ""`,
		"RFC 9110, section 9.1: methods are tokens, and their case counts; the backend gets it as it is"},
	{"tunnel", "CONNECT localhost HTTP/1.1\r\n" + hostField + "\r\n", 405, false, "", ""},
	{"trace", "TRACE / HTTP/1.1\r\n" + hostField + "\r\n", 405, true, "",
		"405 is an answer to the whole request, and the next one begins behind it"},
	{"unknown expectation", postStart + "Expect: x\r\nContent-Length: 3\r\n\r\nabc", 417, false, "", ""},
	// Hosts and targets.
	{"no host", "GET / HTTP/1.1\r\n\r\n", 400, false, "", ""},
	{"two hosts", getStart + "Host: other\r\n\r\n", 400, false, "", ""},
	{"target of another site", "GET http://other.test/x HTTP/1.1\r\n" + hostField + "\r\n", 200, true,
		`GET /x "" Host: other.test`, ""},
	{"target x:@other.test", "GET x:@other.test HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"target *", "GET * HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + hostField + "\r\n", 200, true, "",
		"RFC 9110, section 9.3.7: it is about the server, which answers it; backends don't see it"},
	{"target in wide letters", "GET http://\xef\xbd\x81dmin.test/ HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"target with two ports", "GET http://a:443:443/ HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"target http://localhost", "GET http://localhost HTTP/1.1\r\n" + hostField + "\r\n", 200, true, `GET / ""`, ""},
	{"target ?x", "GET ?x HTTP/1.1\r\n" + hostField + "\r\n", 400, false, "", ""},
	{"path and query", "GET /a%2Fb//c/../d?x=100%&b;a=1&a=2 HTTP/1.1\r\n" + hostField + "\r\n", 200, true,
		`GET /a%2Fb//c/../d?x=100%&b;a=1&a=2 ""`, ""},
	{"path of two slashes", "GET //other.test/ HTTP/1.1\r\n" + hostField + "\r\n", 200, true, `GET //other.test/ ""`, ""},
	{"empty query", "GET /? HTTP/1.1\r\n" + hostField + "\r\n", 200, true, `GET /? ""`, ""},
	// Fields.
	{"forged fields", getStart + "Forwarded: for=forged\r\nX-Forwarded-Port: forged\r\nX-Forwarded-Prefix: forged\r\n" +
		"X_Forwarded_For: forged\r\nx-forwarded_proto: forged\r\nX-Forwarded: forged\r\nClient-Cert: :forged:\r\n" +
		"client_cert: forged\r\nClient-Cert-Chain: :forged:\r\nConnection: X-Forwarded-For\r\nX-Forwarded-For: forged\r\n" +
		"X-Own: mine\r\n\r\n", 200, true, `GET / "" X-Own: mine`, ""},
	{"fields of the connection", getStart + "Keep-Alive: 5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: x\r\n" +
		"TE: trailers, deflate\r\nConnection: TE, X-A, Host\r\nX-A: 1\r\n\r\n", 200, true, `GET / "" Te: trailers`, ""},
	{"upgrade to h2c", getStart + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
		200, true, `GET / ""`, ""},
	{"upgrade to a list with H2C", getStart + "Connection: Upgrade\r\nUpgrade: websocket, H2C\r\n\r\n", 200, true, `GET / ""`, ""},
	{"upgrade to TLS", getStart + "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n", 200, true, `GET / ""`, ""},
	{"upgrade to HTTP/2.0", getStart + "Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n\r\n", 200, true, `GET / ""`, ""},
	{"upgrade and a length", postStart + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc", 200, true,
		`POST / "abc"`, ""},
	{"upgrade and chunks", postStart + "Connection: Upgrade\r\nUpgrade: websocket\r\n" + chunked + nothing, 200, true,
		`POST / ""`, ""},
	{"upgrade of HTTP/1.0", "GET / HTTP/1.0\r\n" + hostField + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n", 200, false,
		`GET / ""`, ""},
	{"upgrade that is refused", getStart + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200, true,
		`GET / "" Connection: Upgrade Upgrade: websocket`, ""},
}

// hostileHosts are values of Host, and whether a request with one is answered.
var hostileHosts = map[string]bool{
	"LOCALHOST.:443": true, "a_b.test:": true, "127.0.0.1": true, "[::1]:443": true, "[::1]": true,
	"": false, "a.test:443:443": false, "a.test:x": false, "a.test,b.test": false, "a.test, b.test": false, "a.test;b": false,
	"[a.test]": false, "[::1": false, "::1": false, "[fe80::1%25eth0]": false, "[::1]x": false, "a..test": false,
	".a.test": false, "a.test..": false, ":443": false, "a%2etest": false, "user@localhost": false, "localhost b.test": false,
}

// fields2 are the fields of an HTTP/2 request.
type fields2 [][2]string

// with returns the header fields of an ordinary request, with changes: more has names and values in turn. A
// pseudo-header replaces the ordinary one, other fields are added, and the value "none" leaves a field out.
func with(more ...string) fields2 {
	all := fields2{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", "/"}}
	for m := range slices.Chunk(more, 2) {
		field := [2]string{m[0], m[1]}
		if i := slices.IndexFunc(all, func(f [2]string) bool { return f[0] == m[0] && m[0][0] == ':' }); i >= 0 {
			all[i] = field
		} else {
			all = append(all, field)
		}
	}
	return slices.DeleteFunc(all, func(f [2]string) bool { return f[1] == "none" })
}

// hostileFields are HTTP/2 requests that are refused: RFC 9113, section 8. Requests with two equal
// lengths are not among them: from Go 1.27 on, net/http takes both for one, as RFC 9110, section 8.6,
// allows.
var hostileFields = []fields2{
	with(":method", "GE T"), with(":method", "GET / HTTP/1.1\r\nX: y\r\n\r\nGET"), with(":method", ""), with(":method", "none"),
	with(":path", "/?x HTTP/1.0"), with(":path", "/a HTTP/1.1\r\nX: y\r\n"), with(":path", "*"), with(":path", ""),
	with(":path", "none"), with(":path", "a"), with(":authority", "localhost other"), with(":authority", "none"),
	with(":authority", "\xef\xbd\x81dmin.test"), with(":authority", "user@localhost"), with(":authority", "localhost\r\nX: y"),
	with(":authority", "localhost/x"), with(":authority", "localhost#"), with(":foo", "1"), with(":status", "200"),
	with("x", "1", ":late", "1"), with("connection", "close"), with("transfer-encoding", "chunked"), with("upgrade", "h2c"),
	with("keep-alive", "1"), with("proxy-connection", "close"), with("te", "gzip"), with("Upper", "x"),
	with("x", "a\r\nInjected: b"), with("x", "a\nb"), with("x", "a\x00"), with("a b", "x"), with("a:b", "x"),
	with("x\r\ny", "x"), with("content-length", "3"), with("content-length", "+0"), with("content-length", "0x"),
	with("content-length", "0", "content-length", "1"),
}

// A hostileResponse has the text that a backend sends as its response. The other fields describe what
// the proxy must make of it for the client.
type hostileResponse struct {
	name, text string
	status     int
	body       string // if it comes whole
	cut        bool   // the client sees that the response is incomplete
	laxer      string // why a client gets what nginx refuses
}

const okStart = "HTTP/1.1 200 OK\r\n"

var hostileResponses = []hostileResponse{
	{"no length", okStart + "\r\nuntil the end", 200, "until the end", false, ""},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end", false, ""},
	{"short body", okStart + "Content-Length: 100\r\n\r\nabc", 200, "", true, ""},
	{"one more response", okStart + "Content-Length: 3\r\n\r\nabc" + okStart + "Content-Length: 6\r\n\r\npoison",
		200, "abc", false, ""},
	{"length and coding", okStart + "Content-Length: 3\r\n" + chunked + "\r\n5\r\nhello\r\n0\r\n\r\n", 200, "hello", false, ""},
	{"two lengths", okStart + "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", 502, "", false, ""},
	{"signed length", okStart + "Content-Length: +3\r\n\r\nabc", 502, "", false, ""},
	{"unknown coding", okStart + "Transfer-Encoding: xchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 502, "", false, ""},
	{"chunks without an end", okStart + chunked + "\r\n5\r\nhello\r\n", 200, "", true, ""},
	{"wrong chunk", okStart + chunked + "\r\n5\r\nhello\r\nzz\r\n0\r\n\r\n", 200, "", true, ""},
	{"carriage return alone", okStart + "X-A: a\rSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok", 502, "", false, ""},
	{"NUL", okStart + "X-A: a\x00b\r\nContent-Length: 2\r\n\r\nok", 502, "", false, ""},
	{"space in a name", okStart + "X A: a\r\nContent-Length: 2\r\n\r\nok", 502, "", false, ""},
	{"space before colon", okStart + "Content-Length : 2\r\n\r\nok", 502, "", false, ""},
	{"folded line", okStart + "X-A: a\r\n b\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false,
		"RFC 9112, section 5.2, has a proxy refuse it or write a space: the client gets a line of its own"},
	{"status 099", "HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok", 502, "", false, ""},
	{"garbage", "garbage\r\n\r\n", 502, "", false, ""},
	{"nothing", "", 502, "", false, ""},
	{"HTTP/0.9", "<html>hi", 502, "", false, ""},
	{"status 1000", "HTTP/1.1 1000 X\r\nContent-Length: 2\r\n\r\nok", 502, "", false, ""},
	{"half a header", okStart + "X: ", 502, "", false, ""},
	{"large header", okStart + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 2000) + "\r\n", 502, "", false, ""},
	{"many 103", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 5000) + okStart + "Content-Length: 2\r\n\r\nok",
		200, "ok", false, "RFC 9110, section 15.2: any number of them may come before a response"},
	{"204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\npoison", 204, "", false, ""},
	{"304 with a body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\npoison", 304, "", false, ""},
}
