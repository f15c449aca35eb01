// A witness as C2SP tlog-witness describes it, for one log, in memory. It shares no code with Toolgate.
// Argument: the verifier's key of the log. Prints its address and its own verifier's key.
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"c2sp.test/note"
	"c2sp.test/tlog"
)

const name = "witness.test/w1"

type witness struct {
	mu   sync.Mutex
	log  note.Verifier
	key  ed25519.PrivateKey
	id   []byte
	size int64
	root tlog.Hash
}

func (w *witness) refuse(out http.ResponseWriter, status int, body string) {
	if status == http.StatusConflict {
		out.Header().Set("Content-Type", "text/x.tlog.size")
	}
	out.WriteHeader(status)
	io.WriteString(out, body)
}

func (w *witness) add(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes, _ := io.ReadAll(io.LimitReader(in.Body, 64*1024))
	head, checkpoint, _ := strings.Cut(string(bytes), "\n\n")
	lines := strings.Split(head, "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	if in.Method != http.MethodPost || err != nil || len(lines) > 64 {
		w.refuse(out, http.StatusBadRequest, "")
		return
	}
	opened, err := note.Open([]byte(checkpoint), note.VerifierList(w.log))
	if err != nil {
		w.refuse(out, http.StatusForbidden, "")
		return
	}
	text := strings.Split(opened.Text, "\n")
	if text[0] != w.log.Name() {
		w.refuse(out, http.StatusNotFound, "")
		return
	}
	size, err1 := strconv.ParseInt(text[1], 10, 64)
	root, err2 := tlog.ParseHash(text[2])
	if err1 != nil || err2 != nil || old > size {
		w.refuse(out, http.StatusBadRequest, "")
		return
	}
	if old != w.size || (size == w.size && root != w.root) {
		w.refuse(out, http.StatusConflict, fmt.Sprintf("%d\n", w.size))
		return
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			w.refuse(out, http.StatusBadRequest, "")
			return
		}
		proof = append(proof, hash)
	}
	if old > 0 && tlog.CheckTree(proof, size, root, old, w.root) != nil || old == 0 && len(proof) > 0 {
		w.refuse(out, http.StatusUnprocessableEntity, "")
		return
	}
	w.size, w.root = size, root
	now := uint64(time.Now().Unix())
	signature := ed25519.Sign(w.key, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", now, opened.Text)))
	line := binary.BigEndian.AppendUint64(append([]byte{}, w.id...), now)
	fmt.Fprintf(out, "\u2014 %s %s\n", name, base64.StdEncoding.EncodeToString(append(line, signature...)))
}

func main() {
	verifier, err := note.NewVerifier(os.Args[1])
	if err != nil {
		panic(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	key := append([]byte{4}, public...)
	id := sha256.Sum256(append([]byte(name+"\n"), key...))
	w := &witness{log: verifier, key: private, id: id[:4]}
	http.HandleFunc("/add-checkpoint", w.add)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s %s+%x+%s\n", listener.Addr(), name, id[:4], base64.StdEncoding.EncodeToString(key))
	panic(http.Serve(listener, nil))
}
