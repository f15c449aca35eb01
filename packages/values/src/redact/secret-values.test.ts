import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { redactor } from './redact.ts'
import { SECRET_VALUES } from './secret-values.ts'

const AROUND: readonly (readonly [string, string])[] = [
  ['', ''],
  ['"', '"'],
  ['x=', '&y=1'],
  ['(', ').'],
  ['line\n', '\nline'],
  ['escaped\\n', '\\n'],
  ['é“', '”é'],
  ['/', '/'],
  ['a_', ' '],
  ['%2F', ' '],
]

describe('values that look like secrets', () => {
  for (const { name, example } of SECRET_VALUES) {
    it(`hide a ${name} wherever it stands`, () => {
      const secret = example.join('')
      for (const [before, after] of AROUND) {
        const redacted = redactor.redactText(before + secret + after)
        assert.ok(redacted.includes(`[redacted:${name}]`), `${before}…${after}: ${redacted}`)
        assert.ok(redacted.startsWith(before) && !redacted.includes(example.at(-1) as string), redacted)
      }
    })
  }
  it('hide a private key without an end, but not the text after it', () => {
    const key = '-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0123456789\nabcdefghijklmnopqrstuvwxyz\nand so on'
    assert.equal(redactor.redactText(key), '[redacted:private-key]\nand so on')
  })
  it('hide the secret key right behind an AWS access key id', () => {
    const id = ['AK', 'IA', 'A1B2C3D4E5F6G7H8'].join('')
    assert.equal(redactor.redactText(`${id},wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz`), '[redacted:aws-key]')
  })
})

const sha = (name: string) => createHash(name).update('x').digest('hex')

const HARMLESS: ReadonlyMap<string, string> = new Map([
  ['a git SHA', sha('sha1')],
  ['a short git SHA', sha('sha1').slice(0, 7)],
  ['a SHA-256', `sha256:${sha('sha256')}`],
  ['an MD5', sha('md5')],
  ['an integrity hash', `sha512-${createHash('sha512').update('x').digest('base64')}`],
  ['a UUID', '0b5e1f3c-2d7a-4f6e-9c8b-1a2b3c4d5e6f'],
  ['a ULID', '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
  [
    'an image',
    `data:image/png;base64,${Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7919) % 251)).toString('base64')}`,
  ],
  ['JSON in base64', Buffer.from('{"cursor":"abc","limit":20}').toString('base64url')],
  ['a tool id', 'files:read_file'],
  ['a call id', 'call_A1b2C3d4E5f6G7h8I9j0K1l2'],
  ['a tool use id', 'toolu_01A09q90qw90lq917835lq9'],
  ['a trace', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
  ['a date', '2026-11-22T01:02:03.456Z'],
  ['a duration', 'PT1H30M'],
  ['a number', '12345678901234567890'],
  ['a telephone number', '+49 30 1234567890'],
  ['an IBAN', 'DE89370400440532013000'],
  ['a version', '@modelcontextprotocol/server-filesystem@2026.1.14'],
  ['a CSS class', 'sk-folding-cube-container-wrapper-element'],
  ['a publishable key', ['pk_', 'live_', 'A1b2C3d4E5f6G7h8I9j0K1l2'].join('')],
  ['a key in the cloud', 'key-value-store-of-the-production-cluster'],
  ['a path', '/usr/share/dictionaries/american-english-insane.txt'],
  [
    'a certificate',
    '-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----',
  ],
  [
    'a public key',
    '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----',
  ],
  ['source code', 'export const sum = (a: number, b: number): number => a + b // O(1)'],
  ['a time and a port', 'listening on 127.0.0.1:8787 since 12:30'],
  ['an e-mail address', 'someone@example.com'],
  ['an ARN', 'arn:aws:iam::123456789012:role/deployer'],
])

describe('values that only look a little like secrets', () => {
  for (const [what, text] of HARMLESS) {
    it(`leave ${what}`, () => {
      assert.equal(redactor.redactText(text), text)
      assert.deepEqual(redactor.redactValue({ id: [`see "${text}".`] }), { id: [`see "${text}".`] })
    })
  }
})
