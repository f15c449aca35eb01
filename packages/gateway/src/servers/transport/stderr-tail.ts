import { clip } from './json-rpc.ts'

const MAX_BYTES = 8 * 1024
/** What a program writes before such a pause does not explain its end. */
const PAUSE_MS = 2_000

/** The end of what a child wrote to stderr, and the line in it that says why the child ended. */
export class StderrTail {
  readonly #nowMs: () => number
  #bytes = Buffer.alloc(0)
  #isCut = false
  /** How many of the bytes were written since the last pause. */
  #freshBytes = 0
  #wroteMs = Number.NEGATIVE_INFINITY

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  add(chunk: Buffer): void {
    const now = this.#nowMs()
    const isAfterPause = now - this.#wroteMs > PAUSE_MS
    this.#wroteMs = now
    this.#freshBytes = (isAfterPause ? 0 : this.#freshBytes) + chunk.length
    const both = chunk.length >= MAX_BYTES ? chunk : Buffer.concat([this.#bytes, chunk])
    this.#isCut ||= both.length > MAX_BYTES || chunk.length > MAX_BYTES
    this.#bytes = Buffer.from(both.subarray(-MAX_BYTES))
  }

  /** Returns the last lines. A line without its beginning is left out, as it may be half of a secret. */
  get text(): string {
    return (this.#isCut ? this.#bytes.subarray(this.#bytes.indexOf(10) + 1) : this.#bytes).toString()
  }

  /** Returns the reason in the last lines, as one line; empty if the child wrote nothing. */
  get reason(): string {
    const fresh = this.#freshBytes < this.#bytes.length ? this.#bytes.subarray(-this.#freshBytes).toString() : this.text
    return findReason(fresh) ?? findReason(this.text) ?? lastLine(this.text)
  }
}

// oxlint-disable-next-line no-control-regex -- terminal colours are what is taken out
const COLOURS = /\u001B\[[0-9;]*[A-Za-z]/g
/** Lines that only an error has, as npm, Node, Python, Go, Rust, Java, .NET and uv write them. */
const SAYS_ERROR =
  /^(?:npm (?:error|ERR!)|(?:[\w.$]+\.)?\w*(?:Error|Exception)(?:\s\[[\w-]+\])?(?::|$)|(?:fatal|panic|error)\b(?! log)|Exception in|Unhandled|Uncaught|thread '[^']*' .*panicked|\u00d7)/i
const MENTIONS_ERROR = /\b(?:\w*error|exception|fatal|failed|cannot|panicked)\b/i
const PYTHON_TRACE = /^Traceback \(most recent call last\):$/

/**
 * Returns the line that says why a program ended: the first that says error. A Python program says it in the line after
 * the last traceback.
 */
function findReason(stderr: string): string | undefined {
  const lines = stderr.replaceAll(COLOURS, '').split(/\r?\n/)
  const trace = lines.findLastIndex((line) => PYTHON_TRACE.test(line.trim()))
  if (trace !== -1) {
    const raised = lines.slice(trace + 1).find((line) => line !== '' && !/^\s/.test(line))
    if (raised !== undefined) return clip(raised)
  }
  const said = lines.findIndex((line) => SAYS_ERROR.test(line.trim()))
  const at = said === -1 ? lines.findIndex((line) => MENTIONS_ERROR.test(line)) : said
  const line = lines[at]
  return line === undefined ? undefined : clip([line.trim(), ...causeAfter(lines, at)].join(' '))
}

/** Returns the part of the next lines that completes an error line, as npm, Rust and uv break it. */
function causeAfter(lines: readonly string[], at: number): readonly string[] {
  const line = (lines[at] ?? '').trim()
  const after = lines.slice(at + 1).map((one) => one.trim())
  if (/^npm (?:error|ERR!) code /.test(line)) {
    const told = after.find((one) => !/^npm (?:error|ERR!) (?:code|errno|syscall|path)\b/.test(one))
    return told === undefined ? [] : [told.replace(/^npm (?:error|ERR!)\s*/, '')]
  }
  if (/panicked at .*:$/.test(line)) return after.slice(0, 1)
  const end = after.findIndex((one) => !CAUSE.test(one))
  return (end === -1 ? after : after.slice(0, end)).filter((one) => one !== '').slice(-1)
}

const CAUSE = /^(?:caused? by:|cause:|\d+: |[\u251c\u2570\u2502]|$)/i

/** Returns the last line that is no part of a stack. */
function lastLine(stderr: string): string {
  const lines = stderr.split('\n').map((line) => clip(line))
  return lines.findLast((line) => line !== '' && !/^(?:Node\.js v|at |[{}^~]+$)/.test(line)) ?? ''
}
