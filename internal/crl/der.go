package crl

// The tags of DER: X.690, section 8.
const (
	tagBoolean         = 0x01
	tagInteger         = 0x02
	tagOctetString     = 0x04
	tagOID             = 0x06
	tagEnumerated      = 0x0a
	tagUTCTime         = 0x17
	tagGeneralizedTime = 0x18
	tagSequence        = 0x30
	tagContext         = 0x80
	tagConstructed     = 0x20
)

// A reader reads DER. A list of 100 MB has millions of entries, for which encoding/asn1 takes too
// much time and memory.
type reader []byte

// next reads an element of any tag. all includes its header.
func (r *reader) next() (tag byte, body, all []byte, ok bool) {
	b := *r
	if len(b) < 2 || b[0]&0x1f == 0x1f { // tags of several bytes occur nowhere in a list
		return 0, nil, nil, false
	}
	n, header := int(b[1]), 2
	if n >= 0x80 {
		size := n - 0x80
		if size == 0 || size > 4 || len(b) < 2+size || b[2] == 0 {
			return 0, nil, nil, false
		}
		n, header = 0, 2+size
		for _, digit := range b[2:header] {
			n = n<<8 | int(digit)
		}
		if n < 0x80 {
			return 0, nil, nil, false
		}
	}
	if n > len(b)-header || n < 0 {
		return 0, nil, nil, false
	}
	*r = b[header+n:]
	return b[0], b[header : header+n], b[:header+n], true
}

// read reads an element that must have this tag.
func (r *reader) read(tag byte) (body []byte, ok bool) {
	got, body, _, ok := r.next()
	return body, ok && got == tag
}

// has reports whether the next element has this tag.
func (r *reader) has(tag byte) bool { return len(*r) > 0 && (*r)[0] == tag }

// appendHeader appends the header of an element with n bytes.
func appendHeader(b []byte, tag byte, n int) []byte {
	b = append(b, tag)
	if n < 0x80 {
		return append(b, byte(n))
	}
	size := 1
	for n>>(8*size) > 0 {
		size++
	}
	b = append(b, 0x80|byte(size))
	for size--; size >= 0; size-- {
		b = append(b, byte(n>>(8*size)))
	}
	return b
}

// isInteger reports whether the body of an INTEGER or ENUMERATED is in its shortest form.
func isInteger(body []byte) bool {
	if len(body) < 2 {
		return len(body) == 1
	}
	return !(body[0] == 0 && body[1] < 0x80 || body[0] == 0xff && body[1] >= 0x80)
}

// isOID reports whether crypto/x509 accepts the body of an OBJECT IDENTIFIER.
func isOID(body []byte) bool {
	start := 0
	for i, b := range body {
		if i == start && b == 0x80 || i-start >= 4 {
			return false
		}
		if b < 0x80 {
			start = i + 1
		}
	}
	return len(body) > 0 && start == len(body)
}

// isTime reports whether an element is a time in the form that RFC 5280, section 5.1.2.4, demands.
func isTime(tag byte, body []byte) bool {
	year := 0
	switch {
	case tag == tagUTCTime && len(body) == 13:
		year = digits(body, 2)
		body = body[2:]
	case tag == tagGeneralizedTime && len(body) == 15:
		if year = digits(body, 4); year == 0 { // which no Gregorian calendar has
			return false
		}
		body = body[4:]
	default:
		return false
	}
	month, day := digits(body, 2), digits(body[2:], 2)
	hour, minute, second := digits(body[4:], 2), digits(body[6:], 2), digits(body[8:], 2)
	if year < 0 || hour < 0 || minute < 0 || second < 0 || month < 1 || month > 12 {
		return false
	}
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		days++
	}
	return day >= 1 && day <= days && hour < 24 && minute < 60 && second < 60 && body[10] == 'Z'
}

// digits returns the number of the first n bytes, or -1 if one isn't a digit.
func digits(b []byte, n int) (value int) {
	for _, digit := range b[:n] {
		if digit < '0' || digit > '9' {
			return -1
		}
		value = 10*value + int(digit-'0')
	}
	return value
}
