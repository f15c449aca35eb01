import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type AnswerHeaders, BadAnswer, ResponseReader } from './response-reader.ts'

interface Read {
  readonly answer?: { status: number; headers: AnswerHeaders; body: string }
  /** `undefined` while the answer goes on. */
  readonly idleMs?: number | undefined
  readonly problem?: string
}

/** Reads an answer that arrives in pieces. */
function read(pieces: readonly Buffer[], { closes = false } = {}): Read {
  const answers: { status: number; headers: AnswerHeaders; body: string }[] = []
  let idleMs: number | undefined
  const reader = new ResponseReader({
    onHead: (status, headers) => answers.push({ status, headers: { ...headers }, body: '' }),
    onBody: (bytes) => (answers.at(-1)!.body += bytes.toString('latin1')),
    onEnd: (ms) => (idleMs = ms),
  })
  try {
    for (const piece of pieces) reader.push(piece)
    if (closes) reader.close()
  } catch (error) {
    assert.ok(error instanceof BadAnswer, String(error))
    return { problem: error.message }
  }
  const [answer] = answers
  return answer ? { answer, idleMs } : { idleMs }
}

/** Writes CRLF for each line's end, and a bare LF for `␊`. */
const bytes = (text: string) => Buffer.from(text.replaceAll('\n', '\r\n').replaceAll('␊', '\n'), 'latin1')

/** Cuts bytes into pieces of the given lengths, again and again. */
function cut(whole: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0, i = 0; at < whole.length; i++) {
    const end = at + (lengths[i % lengths.length] ?? 1)
    pieces.push(whole.subarray(at, end))
    at = end
  }
  return pieces
}

const json = { 'content-type': 'application/json' }

const GOOD: readonly (readonly [name: string, text: string, expected: object])[] = [
  [
    'a body of a known length',
    'HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 7\n\n{"a":1}',
    { answer: { status: 200, headers: { ...json, 'content-length': '7' }, body: '{"a":1}' }, idleMs: 4000 },
  ],
  [
    'chunks with extensions, and trailers',
    'HTTP/1.1 200 \nTransfer-Encoding: chunked\n\n3;a=b\nabc\n0A\n0123456789\n0\nx-sum: 1\n\n',
    { answer: { status: 200, headers: { 'transfer-encoding': 'chunked' }, body: 'abc0123456789' }, idleMs: 4000 },
  ],
  [
    'early hints before the answer',
    'HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\nlink: </a>\n\nHTTP/1.1 202 Accepted\ncontent-length: 0\n\n',
    { answer: { status: 202, headers: { 'content-length': '0' }, body: '' }, idleMs: 4000 },
  ],
  [
    'no content, whatever length it names',
    'HTTP/1.1 204 No Content\nmcp-session-id: s\n\n',
    { answer: { status: 204, headers: { 'mcp-session-id': 's' }, body: '' }, idleMs: 0 },
  ],
  [
    'the time that a server keeps its connections',
    'HTTP/1.1 200 OK\ncontent-length: 0\nkeep-alive: max=9, timeout=72\n\n',
    {
      answer: { status: 200, headers: { 'content-length': '0', 'keep-alive': 'max=9, timeout=72' }, body: '' },
      idleMs: 70_000,
    },
  ],
  [
    'a server that closes its connection',
    'HTTP/1.1 200 OK\ncontent-length: 1\nconnection: x, Close\n\na',
    { answer: { status: 200, headers: { 'content-length': '1', connection: 'x, Close' }, body: 'a' }, idleMs: 0 },
  ],
  [
    'HTTP/1.0, whose connections are not kept',
    'HTTP/1.0 200 OK\ncontent-length: 1\n\na',
    { answer: { status: 200, headers: { 'content-length': '1' }, body: 'a' }, idleMs: 0 },
  ],
]

const BAD: readonly (readonly [name: string, text: string, problem: string])[] = [
  ['two lengths', 'HTTP/1.1 200 OK\ncontent-length: 1\ncontent-length: 1\n\na', 'sent two content-length headers'],
  [
    'a length and a coding',
    'HTTP/1.1 200 OK\ncontent-length: 1\ntransfer-encoding: chunked\n\n',
    'sent a body whose end is unclear',
  ],
  ['another coding', 'HTTP/1.1 200 OK\ntransfer-encoding: gzip, chunked\n\n', 'sent a body whose end is unclear'],
  ['a coding in HTTP/1.0', 'HTTP/1.0 200 OK\ntransfer-encoding: chunked\n\n', 'sent a body whose end is unclear'],
  [
    'a coding that ends with a no-break space',
    'HTTP/1.1 200 OK\ntransfer-encoding: chunked\xA0\n\n',
    'sent a body whose end is unclear',
  ],
  [
    'a length that ends with a no-break space',
    'HTTP/1.1 200 OK\ncontent-length: 1\xA0\n\na',
    'sent a content-length that is not a number',
  ],
  ['a signed length', 'HTTP/1.1 200 OK\ncontent-length: +1\n\na', 'sent a content-length that is not a number'],
  ['a list of lengths', 'HTTP/1.1 200 OK\ncontent-length: 1, 1\n\na', 'sent a content-length that is not a number'],
  ['more than the answer', 'HTTP/1.1 200 OK\ncontent-length: 1\n\naHTTP/1.1 200 OK\n', 'sent more than its answer'],
  ['a space before the colon', 'HTTP/1.1 200 OK\ncontent-length : 1\n\na', 'sent an invalid header'],
  ['a folded header', 'HTTP/1.1 200 OK\nx: a\n b\n\n', 'sent an invalid header'],
  ['a header without a colon', 'HTTP/1.1 200 OK\nabc\n\n', 'sent an invalid header'],
  ['a NUL in a header', 'HTTP/1.1 200 OK\nx: \0\n\n', 'sent an invalid header'],
  ['a bare LF', 'HTTP/1.1 200 OK\nx: a␊content-length: 1\n\n', 'sent an invalid header'],
  ['another protocol', 'SSH-2.0-OpenSSH_9.9\n\n', 'answered something that is not HTTP/1.1'],
  ['HTTP/2', 'HTTP/2 200 OK\n\n', 'answered something that is not HTTP/1.1'],
  ['another protocol over this one', 'HTTP/1.1 101 Switching\nupgrade: x\n\n', 'answered HTTP 101'],
  ['interim answers without end', 'HTTP/1.1 100 Continue\n\n'.repeat(17), 'answered HTTP 100'],
  ['a chunk without a size', 'HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n\nabc', 'sent a chunk without a size'],
  ['a negative chunk', 'HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n-1\n', 'sent a chunk without a size'],
  ['a chunk of 4 GiB', 'HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n100000000\n', 'sent a chunk without a size'],
  [
    'a chunk that is too long',
    'HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n1\nabc\n',
    'sent a chunk of another size than it named',
  ],
  ['an invalid trailer', 'HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n0\n x\n\n', 'sent an invalid trailer'],
]

describe('ResponseReader', () => {
  for (const [name, text, expected] of GOOD)
    it(`reads ${name}, in whatever pieces it arrives`, () => {
      const whole = bytes(text)
      assert.deepEqual(read([whole]), expected)
      const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 })
      fc.assert(fc.property(lengths, (some) => assert.deepEqual(read(cut(whole, some)), expected)))
    })

  for (const [name, text, problem] of BAD)
    it(`refuses ${name}, in whatever pieces it arrives`, () => {
      const sent = bytes(text)
      assert.deepEqual(read([sent]), { problem })
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }), (some) =>
          assert.deepEqual(read(cut(sent, some)), { problem }),
        ),
      )
    })

  it('reads a body until the end of the connection where it has no length', () => {
    const expected = { status: 200, headers: json, body: '{}' }
    const whole = bytes('HTTP/1.1 200 OK\ncontent-type: application/json\n\n{}')
    assert.deepEqual(read([whole]), { answer: expected, idleMs: undefined })
    assert.deepEqual(read([whole], { closes: true }), { answer: expected, idleMs: 0 })
  })

  for (const framing of ['content-length: 5', 'transfer-encoding: chunked'])
    for (const status of [204, 304])
      it(`keeps no connection after HTTP ${status} with ${framing}, whose body may follow`, () =>
        assert.equal(read([bytes(`HTTP/1.1 ${status} None\n${framing}\n\n`)]).idleMs, 0))

  it('knows that an answer is cut', () => {
    const { idleMs } = read([bytes('HTTP/1.1 200 OK\ncontent-length: 3\n\nab')], { closes: true })
    assert.equal(idleMs, undefined)
  })

  it('bounds the head, the size line of a chunk and the trailers', () => {
    const long = Buffer.alloc(17 * 1024, 'x')
    const chunked = bytes('HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n')
    assert.deepEqual(read([bytes('HTTP/1.1 200 OK\nx: '), long]), { problem: 'sent too many headers' })
    assert.deepEqual(read([chunked, bytes('1;'), long]), { problem: 'sent a line that is too long' })
    const trailers = Array.from({ length: 40 }, () => bytes(`x: ${'y'.repeat(500)}\n`))
    assert.deepEqual(read([chunked, bytes('0\n'), ...trailers]), { problem: 'sent a line that is too long' })
  })
})
