package httptls

import "net/http"

// WithHeaders returns a RoundTripper that calls edit with the header of each request before rt
// sends it. The header is a copy: the caller's request stays as it is. The Host field of a request
// is not in its header; set [http.Request.Host].
func WithHeaders(rt http.RoundTripper, edit func(http.Header)) http.RoundTripper {
	if rt == nil || edit == nil {
		panic("httptls: WithHeaders needs a RoundTripper and a function")
	}
	return &headerTransport{rt, edit}
}

type headerTransport struct {
	next http.RoundTripper
	edit func(http.Header)
}

func (t *headerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.WithContext(req.Context()) // a shallow copy
	sent.Header = req.Header.Clone()
	if sent.Header == nil {
		sent.Header = make(http.Header)
	}
	t.edit(sent.Header)
	return t.next.RoundTrip(sent)
}

// CloseIdleConnections makes [http.Client.CloseIdleConnections] reach the transport beneath.
func (t *headerTransport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
