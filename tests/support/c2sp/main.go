// Checks proofs with the packages that the Go checksum database is checked with. It shares no code with Toolgate.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"c2sp.test/note"
	"c2sp.test/tlog"
)

// open returns the size and the root of a checkpoint that the key has signed.
func open(text, vkey string) (int64, tlog.Hash, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	opened, err := note.Open([]byte(text), note.VerifierList(verifier))
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != verifier.Name() {
		return 0, tlog.Hash{}, errors.New("not a checkpoint of this log")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return size, root, err
}

func hashes(lines []string) ([]tlog.Hash, error) {
	var all []tlog.Hash
	for _, line := range lines {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return nil, err
		}
		all = append(all, hash)
	}
	return all, nil
}

type link struct {
	Record, Hashes, Leaf string
	Path                 []string
}

type chainLeaf struct {
	Seq int64
	// How many of the last records are in the tree. Absent if all are.
	Count *int64
	Root  string
}

func fromHex(text string) (hash tlog.Hash, err error) {
	_, err = hex.Decode(hash[:], []byte(text))
	return hash, err
}

// checkRecord checks a c2sp.org/tlog-proof@v1 and what its extra line says about a record.
func checkRecord(text, vkey string) (string, error) {
	head, checkpoint, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	if len(lines) < 3 || lines[0] != "c2sp.org/tlog-proof@v1" {
		return "", errors.New("not a tlog-proof")
	}
	size, root, err := open(checkpoint, vkey)
	if err != nil {
		return "", err
	}
	extra, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(lines[1], "extra "))
	if err != nil {
		return "", err
	}
	var linked link
	if err := json.Unmarshal(extra, &linked); err != nil {
		return "", err
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[2], "index "), 10, 64)
	if err != nil {
		return "", err
	}
	path, err := hashes(lines[3:])
	if err != nil {
		return "", err
	}
	if err := tlog.CheckRecord(path, size, root, index, tlog.RecordHash([]byte(linked.Leaf))); err != nil {
		return "", err
	}
	return linked.Record, checkLink(linked)
}

// checkLink checks that a record is in the chain of a leaf: a tree of RFC 6962 with 16 records in an entry.
func checkLink(linked link) error {
	var leaf chainLeaf
	if err := json.Unmarshal([]byte(linked.Leaf), &leaf); err != nil {
		return err
	}
	var record struct {
		Seq        int64
		Prev, Hash string
	}
	if err := json.Unmarshal([]byte(linked.Record), &record); err != nil {
		return err
	}
	hashed := strings.Replace(linked.Record, `,"hash":"`+record.Hash+`"`, "", 1)
	own := sha256.Sum256([]byte("toolgate.audit.v1\x00" + record.Prev + hashed))
	if hex.EncodeToString(own[:]) != record.Hash {
		return errors.New("the record does not have its hash")
	}
	entry, err := hex.DecodeString(linked.Hashes)
	if err != nil {
		return err
	}
	count := leaf.Seq
	if leaf.Count != nil {
		count = *leaf.Count
	}
	index := record.Seq - 1 - (leaf.Seq - count)
	if index < 0 {
		return errors.New("the record is before those of the leaf")
	}
	at := index % 16 * 32
	if int64(len(entry)) < at+32 || !bytes.Equal(entry[at:at+32], own[:]) {
		return errors.New("the record is not in its entry")
	}
	var path tlog.RecordProof
	for _, step := range linked.Path {
		hash, err := fromHex(step)
		if err != nil {
			return err
		}
		path = append(path, hash)
	}
	root, err := fromHex(leaf.Root)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(path, (count+15)/16, root, index/16, tlog.RecordHash(entry))
}

// checkGrowth checks the body of an add-checkpoint request against the earlier checkpoint.
func checkGrowth(text, old, vkey string) (string, error) {
	head, checkpoint, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	oldSize, oldRoot, err := open(old, vkey)
	if err != nil {
		return "", err
	}
	if lines[0] != fmt.Sprintf("old %d", oldSize) {
		return "", errors.New("not from the earlier checkpoint")
	}
	size, root, err := open(checkpoint, vkey)
	if err != nil {
		return "", err
	}
	path, err := hashes(lines[1:])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d to %d", oldSize, size), tlog.CheckTree(path, size, root, oldSize, oldRoot)
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return string(text)
}

// Arguments: the verifier's key, the proof, and for growth the earlier checkpoint.
func main() {
	var said string
	var err error
	if len(os.Args) == 4 {
		said, err = checkGrowth(read(os.Args[2]), read(os.Args[3]), os.Args[1])
	} else {
		said, err = checkRecord(read(os.Args[2]), os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(said)
}
