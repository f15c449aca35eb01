import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StderrTail } from './stderr-tail.ts'

function reasonOf(text: string): string {
  const tail = new StderrTail()
  tail.add(Buffer.from(text))
  return tail.reason
}

const NPM = `npm warn deprecated glob@7.2.3: no longer supported
npm error code SELF_SIGNED_CERT_IN_CHAIN
npm error errno SELF_SIGNED_CERT_IN_CHAIN
npm error request to https://registry.example.com/x failed, reason: self-signed certificate in certificate chain
npm error A complete log of this run can be found in: /home/vera/.npm/_logs/2026-11-28-debug-0.log
`
const OLD_NPM = `npm ERR! code E404
npm ERR! 404 Not Found - GET https://registry.example.com/x - Not found
npm ERR! A complete log of this run can be found in: /x
`
const OFFLINE_NPM = `npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to https://registry.example.com/x failed, reason: getaddrinfo ENOTFOUND registry.example.com
npm error network This is a problem related to network connectivity.
`
const NODE = `node:internal/modules/cjs/loader:1148
  throw err;
  ^

Error: Cannot find module '/srv/server.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1145:15) {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v24.21.0
`
const PYTHON = `INFO: error reporting is on
Traceback (most recent call last):
  File "/srv/a.py", line 1, in <module>
    import missing
ModuleNotFoundError: No module named 'missing'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/a.py", line 3, in <module>
    raise RuntimeError("no configuration")
RuntimeError: no configuration
Exception ignored in: <function x>
`
const UV = `error: Request failed after 3 retries
  Caused by: Failed to fetch: \`https://pypi.example.com/simple/x/\`
  Caused by: client error (Connect)
  Caused by: invalid peer certificate: UnknownIssuer
`
const NEW_UV = `Resolving
error: No solution found when resolving tool dependencies
  cause: Because x was not found in the package registry and you require x, your requirements are unsatisfiable.
`
const RUST = `thread 'main' panicked at src/main.rs:2:5:
no such table
note: run with RUST_BACKTRACE=1
`
const GO = `2026/11/28 12:00:00 starting
panic: runtime error: index out of range [1] with length 0

goroutine 1 [running]:
main.main()
exit status 2
`
const JAVA = `Exception in thread "main" java.lang.IllegalStateException: no port
\tat App.main(App.java:3)
`

describe('the reason in what a child wrote', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    [
      'npm',
      NPM,
      'npm error code SELF_SIGNED_CERT_IN_CHAIN request to https://registry.example.com/x failed, reason: self-signed certificate in certificate chain',
    ],
    ['npm before 10', OLD_NPM, 'npm ERR! code E404 404 Not Found - GET https://registry.example.com/x - Not found'],
    [
      'npm without a network',
      OFFLINE_NPM,
      'npm error code ENOTFOUND network request to https://registry.example.com/x failed, reason: getaddrinfo ENOTFOUND registry.example.com',
    ],
    ['Node', NODE, "Error: Cannot find module '/srv/server.js'"],
    ['Python', PYTHON, 'RuntimeError: no configuration'],
    ['uv', UV, 'error: Request failed after 3 retries Caused by: invalid peer certificate: UnknownIssuer'],
    [
      'a new uv',
      NEW_UV,
      'error: No solution found when resolving tool dependencies cause: Because x was not found in the package registry and you require x, your requirements are unsatisfiable.',
    ],
    ['Rust', RUST, "thread 'main' panicked at src/main.rs:2:5: no such table"],
    ['Go', GO, 'panic: runtime error: index out of range [1] with length 0'],
    ['Java', JAVA, 'Exception in thread "main" java.lang.IllegalStateException: no port'],
    ['a log with levels', '[INFO] begins\n[ERROR] no database\nbye\n', '[ERROR] no database'],
    ['colours', '\u001B[31merror\u001B[0m: no file\nbye', 'error: no file'],
    ['several errors', 'Error: the cause\nError: its consequence\n', 'Error: the cause'],
    ['no error', 'begins\nlisten tcp :80: bind: permission denied\n\n', 'listen tcp :80: bind: permission denied'],
    ['nothing', '', ''],
  ]
  for (const [what, text, reason] of cases)
    it(`is the line that says error: ${what}`, () => assert.equal(reasonOf(text), reason))

  it('is of its last words, not of an error that it survived', () => {
    let now = 0
    const tail = new StderrTail(() => now)
    tail.add(Buffer.from('Error: one request was refused\n'))
    now = 60_000
    tail.add(Buffer.from('closing\nfatal: the disk is full\n'))
    assert.equal(tail.reason, 'fatal: the disk is full')
    now = 120_000
    tail.add(Buffer.from('bye\n'))
    assert.equal(tail.reason, 'Error: one request was refused')
  })

  it('has no half of a secret: neither of a long line, nor of one whose beginning is lost', () => {
    const key = `sk-${'a1B2'.repeat(12)}`
    assert.doesNotMatch(reasonOf(`Error: ${'x'.repeat(170)} ${key} is refused\n`), /a1B2/)
    const tail = new StderrTail()
    tail.add(Buffer.from(`password=${key}${'x'.repeat(9000)}`))
    assert.equal(tail.text.includes('a1B2') || tail.reason.includes('a1B2'), false)
    tail.add(Buffer.from(`${key}\nError: at last\n`))
    assert.equal(tail.text, 'Error: at last\n')
  })
})
