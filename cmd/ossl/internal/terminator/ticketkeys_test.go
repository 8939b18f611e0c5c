package terminator_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestRotate: a key seals for a day and opens for a week.
func TestRotate(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name       string
		ages, want []time.Duration
	}{
		{"none", nil, []time.Duration{0}},
		{"young", []time.Duration{time.Hour}, []time.Duration{time.Hour}},
		{"sealed for long enough", []time.Duration{day}, []time.Duration{0, day}},
		{"too old", []time.Duration{time.Hour, 7*day - 1, 7 * day}, []time.Duration{time.Hour, 7*day - 1}},
		{"all too old", []time.Duration{7 * day, 9 * day}, []time.Duration{0}},
		{"from the future", []time.Duration{-time.Hour}, []time.Duration{-time.Hour}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := terminator.RotateAges(day, 7*day, c.ages...); !slices.Equal(got, c.want) {
				t.Errorf("ages %v, want %v", got, c.want)
			}
		})
	}
}

// TestPassTicketKeys: the next process seals with the former one's key, unless that is too old.
// Bytes that aren't keys are refused.
func TestPassTicketKeys(t *testing.T) {
	const size = 88
	before, after, err := terminator.PassTicketKeys(func(b []byte) []byte { return b })
	if err != nil || len(before) != 1 || len(after) != 1 || after[0].Name != before[0].Name ||
		!bytes.Equal(after[0].Cipher, before[0].Cipher) || !bytes.Equal(after[0].MAC, before[0].MAC) {
		t.Errorf("%v, then %v, %v", before, after, err)
	}
	if _, after, err = terminator.PassTicketKeys(func([]byte) []byte { return nil }); err != nil || len(after) != 1 {
		t.Errorf("without a key: %v, %v", after, err)
	}
	for name, made := range map[string]byte{"made in 1970": 0, "made in the future": 0x7f} {
		before, after, err = terminator.PassTicketKeys(func(b []byte) []byte {
			clear(b[:8])
			b[0] = made
			return b
		})
		if kept := made != 0; err != nil || len(after) != 1 || (after[0].Name == before[0].Name) != kept {
			t.Errorf("%s: %v, then %v, %v", name, before, after, err)
		}
	}
	for name, change := range map[string]func([]byte) []byte{
		"cut short": func(b []byte) []byte { return b[:size-1] },
		"too long":  func(b []byte) []byte { return append(b, 0) },
		"too many":  func(b []byte) []byte { return bytes.Repeat(b, 5000) },
		"zeros":     func([]byte) []byte { return make([]byte, size) },
		"the same":  func(b []byte) []byte { return bytes.Repeat(b, 2) },
	} {
		if _, after, err := terminator.PassTicketKeys(change); err == nil {
			t.Errorf("%s: accepted, %v", name, after)
		}
	}
}
