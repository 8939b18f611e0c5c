package ossl

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A fileState is the metadata of a file at one time, or the reason for which there are none.
type fileState struct {
	name string
	info fs.FileInfo // nil with an error
	err  error
}

// statFiles returns the states of files, and of the files in folders.
func statFiles(paths []string) (all []fileState) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			all = append(all, fileState{path, info, err})
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			all = append(all, fileState{path, nil, err})
			continue
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), ".") {
				continue
			}
			file := filepath.Join(path, entry.Name())
			if info, err := os.Stat(file); err != nil || !info.IsDir() {
				all = append(all, fileState{file, info, err})
			}
		}
	}
	return all
}

func sameFiles(all, others []fileState) bool {
	return slices.EqualFunc(all, others, func(s, t fileState) bool {
		switch {
		case s.name != t.name || (s.err == nil) != (t.err == nil):
			return false
		case s.err != nil:
			return s.err.Error() == t.err.Error()
		}
		return os.SameFile(s.info, t.info) && s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime()) &&
			statusTime(s.info).Equal(statusTime(t.info))
	})
}

// settleTime is the age that a file must have for a later change to give it another time: file
// systems' clocks are coarse.
const settleTime = 2 * time.Second

// settled reports whether a later change of the files will give them another state.
func settled(all []fileState) bool {
	return !slices.ContainsFunc(all, func(s fileState) bool {
		return s.err == nil && (time.Since(s.info.ModTime()) < settleTime || time.Since(statusTime(s.info)) < settleTime)
	})
}

// found reports whether there are metadata of all files.
func found(all []fileState) bool {
	return !slices.ContainsFunc(all, func(s fileState) bool { return s.err != nil })
}

// contents are what files held at one time.
type contents struct {
	sum      [sha256.Size]byte // of their names and contents
	complete bool              // each is a regular file, or doesn't exist
}

// readFiles returns the contents of files.
func readFiles(all []fileState) (contents, error) {
	c, h := contents{complete: true}, sha256.New()
	for _, s := range all {
		_, _ = io.WriteString(h, s.name+"\x00")
		switch {
		case errors.Is(s.err, fs.ErrNotExist):
			continue
		case s.err != nil:
			return contents{}, s.err
		case !s.info.Mode().IsRegular():
			c.complete = false
			continue
		}
		sum, err := hashFile(s.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return contents{}, err
		}
		_, _ = h.Write(sum)
	}
	h.Sum(c.sum[:0])
	return c, nil
}

func hashFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h := sha256.New()
	_, err = io.Copy(h, file)
	return h.Sum(nil), err
}
