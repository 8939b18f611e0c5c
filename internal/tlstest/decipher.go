package tlstest

import "crypto/tls"

// Decipher returns the records that a side wrote, decrypted as far as the key log allows.
func (r *Recording) Decipher(from Role, log *KeyLog) []Record {
	records, _ := SplitRecords(r.Bytes(from))
	ch, sh := r.hellos()
	if sh.version == 0 {
		return markOpaque(records)
	}
	if sh.version == tls.VersionTLS13 {
		return decipher13(records, from, sh.suite, log)
	}
	return decipher12(records, from, ch, sh, log)
}

// hellos returns the ClientHello and the last ServerHello that is not a HelloRetryRequest.
func (r *Recording) hellos() (client, server hello) {
	clear := func(from Role) []Record {
		all, _ := SplitRecords(r.Bytes(from))
		for i := range all {
			all[i].Opaque = all[i].Type != TypeHandshake
		}
		return all
	}
	for _, m := range Messages(clear(ClientRole)) {
		if h, ok := parseHello(m); ok && m[0] == MsgClientHello {
			client = h
			break
		}
	}
	for _, m := range Messages(clear(ServerRole)) {
		if h, ok := parseHello(m); ok && m[0] == MsgServerHello && !h.retry {
			server = h
			break
		}
	}
	return client, server
}

// Negotiated returns the version and suite that the recorded ServerHello chose, or zeros.
func (r *Recording) Negotiated() (version, suite uint16) {
	_, sh := r.hellos()
	return sh.version, sh.suite
}

func markOpaque(records []Record) []Record {
	for i := range records {
		records[i].Opaque = records[i].Type == TypeApplicationData
	}
	return records
}

func decipher13(records []Record, from Role, suite uint16, log *KeyLog) []Record {
	label := map[Role]string{ClientRole: "CLIENT", ServerRole: "SERVER"}[from]
	// A side's records may be sealed with any of these keys. They are tried in turn, since a side
	// that fails may stop at any of them.
	var current []*Keys
	for _, l := range []string{label + "_HANDSHAKE_TRAFFIC_SECRET", label + "_TRAFFIC_SECRET_0"} {
		if k, err := Keys13(suite, log.Secret(l)); err == nil {
			current = append(current, k)
		}
	}
	for i, r := range records {
		if r.Type != TypeApplicationData {
			continue
		}
		records[i].Opaque = true
		for len(current) > 0 {
			plain, err := current[0].Open(r)
			if err == nil {
				records[i] = plain
				break
			}
			if len(current) == 1 {
				break
			}
			if _, err := current[1].Open(r); err != nil {
				break
			}
			current = current[1:]
			current[0].SkipTo(0)
		}
		if p := records[i]; !p.Opaque && p.Type == TypeHandshake && len(p.Payload) == 5 && p.Payload[0] == MsgKeyUpdate {
			current = []*Keys{current[0].Next()}
		}
	}
	return records
}

func decipher12(records []Record, from Role, ch, sh hello, log *KeyLog) []Record {
	client, server, err := Keys12(sh.suite, log.Secret("CLIENT_RANDOM"), ch.random, sh.random)
	keys := server
	if from == ClientRole {
		keys = client
	}
	changed := false
	for i, r := range records {
		if !changed {
			changed = r.Type == TypeChangeCipherSpec
			continue
		}
		records[i].Opaque = true
		if err != nil {
			continue
		}
		if plain, err := keys.Open(r); err == nil {
			records[i] = plain
		}
	}
	return records
}

// SendKeys returns the keys with which a side's next records would be sealed after the handshake,
// if the side has sent only its handshake yet.
func (r *Recording) SendKeys(from Role, log *KeyLog) (*Keys, error) {
	ch, sh := r.hellos()
	if sh.version == tls.VersionTLS13 {
		label := map[Role]string{ClientRole: "CLIENT_TRAFFIC_SECRET_0", ServerRole: "SERVER_TRAFFIC_SECRET_0"}[from]
		return Keys13(sh.suite, log.Secret(label))
	}
	client, server, err := Keys12(sh.suite, log.Secret("CLIENT_RANDOM"), ch.random, sh.random)
	if err != nil {
		return nil, err
	}
	keys := server
	if from == ClientRole {
		keys = client
	}
	keys.SkipTo(1) // Finished was number 0
	return keys, nil
}
