// Package wholefile writes files that appear whole or not at all, also if the disk is full or the
// process is killed.
package wholefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// A File is a file to create.
type File struct {
	Name string
	Mode fs.FileMode
	Text []byte
}

// Create creates files that must not exist: in their order, and none of them if one fails. The error
// for one that exists wraps fs.ErrExist. If the process is killed, later files may be missing.
func Create(files ...File) (err error) {
	var made []string
	defer func() {
		if err != nil {
			for _, name := range made {
				err = errors.Join(err, os.Remove(name))
			}
		}
	}()
	var unnamed []*temporary
	defer func() {
		for _, t := range unnamed {
			t.discard()
		}
	}()
	for _, f := range files {
		t, err := write(f.Name, f.Mode, func(w io.Writer) error {
			_, err := w.Write(f.Text)
			return err
		})
		if err != nil {
			return err
		}
		unnamed = append(unnamed, t)
	}
	for i, t := range unnamed {
		if err := t.link(files[i].Name); err != nil {
			return err
		}
		made = append(made, files[i].Name)
	}
	for i, f := range files {
		if folder := filepath.Dir(f.Name); i == 0 || folder != filepath.Dir(files[i-1].Name) {
			if err := syncFolder(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// Replace writes a file. When the file is whole, it takes the place of the existing file with that
// name, and keeps its mode. Replace refuses to replace anything but regular files, such as devices.
func Replace(name string, contents func(io.Writer) error) error {
	mode, err := modeOf(name)
	if err != nil {
		return err
	}
	return replace(name, mode, contents)
}

// Put writes a file with its mode. When the file is whole, it takes the place of the existing file
// with that name.
func Put(f File) error {
	if _, err := modeOf(f.Name); err != nil {
		return err
	}
	return replace(f.Name, f.Mode, func(w io.Writer) error {
		_, err := w.Write(f.Text)
		return err
	})
}

func replace(name string, mode fs.FileMode, contents func(io.Writer) error) error {
	t, err := writeNamed(name, mode, contents)
	if err != nil {
		return err
	}
	defer t.discard()
	if err := os.Rename(t.name, name); err != nil {
		return pathError(name, err)
	}
	t.name = ""
	return syncFolder(filepath.Dir(name))
}

// CheckReplace returns an error if Replace could not write a file now.
func CheckReplace(name string) error {
	mode, err := modeOf(name)
	if err != nil {
		return err
	}
	t, err := write(name, mode, func(io.Writer) error { return nil })
	if err != nil {
		return err
	}
	t.discard()
	return nil
}

// modeOf returns the mode of a file to replace, or the mode for a new file.
func modeOf(name string) (fs.FileMode, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0o644, nil
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s is not a regular file, so it isn't replaced", name)
	}
	return info.Mode().Perm(), nil
}

// A temporary is a file that is written and synchronized, but hasn't got its name yet.
type temporary struct {
	file *os.File
	name string // "" if it has none
}

// write writes a file without a name if the system can, since such a file vanishes with its process.
func write(name string, mode fs.FileMode, contents func(io.Writer) error) (*temporary, error) {
	if file, err := openUnnamed(filepath.Dir(name)); err == nil {
		return (&temporary{file: file}).fill(name, mode, contents)
	}
	return writeNamed(name, mode, contents)
}

// writeNamed writes a file under another name.
func writeNamed(name string, mode fs.FileMode, contents func(io.Writer) error) (*temporary, error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".ossl-") // mode 0600, O_EXCL
	if err != nil {
		return nil, pathError(name, err)
	}
	return (&temporary{file: file, name: file.Name()}).fill(name, mode, contents)
}

// fill writes the contents, and discards t if that fails.
func (t *temporary) fill(name string, mode fs.FileMode, contents func(io.Writer) error) (*temporary, error) {
	err := contents(t.file)
	if err == nil && runtime.GOOS != "windows" {
		err = t.file.Chmod(mode)
	}
	if err == nil {
		err = t.file.Sync()
	}
	if err == nil && t.name != "" { // Windows renames no open file
		err = t.file.Close()
	}
	if err != nil {
		t.discard()
		return nil, pathError(name, err)
	}
	return t, nil
}

// link gives the file a further name, which must not exist.
func (t *temporary) link(name string) error {
	var err error
	if t.name == "" {
		err = linkUnnamed(t.file, name)
	} else {
		err = os.Link(t.name, name)
	}
	if err != nil {
		return pathError(name, err)
	}
	return nil
}

// discard closes the file, and removes its first name.
func (t *temporary) discard() {
	_ = t.file.Close()
	if t.name != "" {
		_ = os.Remove(t.name)
	}
}

// pathError returns an error about the name that the caller knows, not the temporary one.
func pathError(name string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: "create", Path: name, Err: err}
}

// syncFolder makes new names in a folder last. Some systems and file systems can't, and a folder in
// which files may be made need not be readable.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if errors.Is(err, fs.ErrPermission) || runtime.GOOS == "windows" {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
