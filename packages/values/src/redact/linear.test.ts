import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRedactor } from './redact.ts'
import { SECRET_VALUES } from './secret-values.ts'

const SIZE = 20_000
/** Ten times the text: linear costs ten times, quadratic a hundred. */
const FACTOR = 10
const SLACK = 4
/** Shorter times are noise. */
const NOISE_MS = 5

/** What makes a matcher that tries again at each place read the rest of the text each time. */
const PIECES: readonly string[] = [
  'eyJaaaaaaaaaa-',
  'eyJaaaaaaaaaa.eyJ-',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN ',
  'sk-a',
  'sk-proj-a-',
  '://',
  'a://b:c',
  'a://@',
  'password=',
  'パスワード',
  'パスワード=',
  'ﷺ=',
  'a.b.',
  'P.I.N.=',
  'e\u0301=',
  'password="',
  "password='",
  'password=\\"',
  'password=\\\\\\"',
  'sig=',
  'sig="\\"',
  "'cookie:'",
  'cookie:',
  'authorization:',
  'authorization: x',
  '--token ',
  '--token',
  '\\',
  '\\\\"',
  '%3D',
  'token%3D',
  'bearer ',
  'Basic a/',
  '[redacted:',
  '[redacted:token]',
  '12345678:',
  'MTaaaaaaaaaaaaaaaaaaaaaaaa.',
  'SG.aaaaaaaaaaaaaaaaaaaaaa.',
  'AKIAAAAAAAAAAAAAAAAA,',
  'key-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-',
  ')',
  'token=)',
  'aaaaab',
  'aaaaaaa',
  ...SECRET_VALUES.flatMap(({ starts, example }) => [...starts, example.join('').slice(0, 12)]),
]

const secrets = [
  'aaaaaaaaaaaaaaaaaaaaaaaac',
  'aaaaaaac',
  'aaaaabaaaaabaaaaabc',
  ...Array.from({ length: 50 }, (_, i) => 'a'.repeat(6 + i) + 'd'),
]

describe('the time that redaction takes', () => {
  it('grows no faster than the text, for every repeated part', () => {
    const { redactText } = createRedactor({ secrets, patterns: ['(a+)+b', 'INT-\\d+'] })
    for (const piece of PIECES) {
      const seen: string[] = []
      // A pause of the garbage collector, or of the machine, does not come three times in a row.
      const isLinear = () => {
        const small = costMs(() => redactText(toText(piece, SIZE)))
        const large = costMs(() => redactText(toText(piece, SIZE * FACTOR)))
        seen.push(`${small} ms, then ${large} ms`)
        return large <= NOISE_MS || large <= Math.max(small, 1) * FACTOR * SLACK
      }
      assert.ok(isLinear() || isLinear() || isLinear(), `${piece}: ${seen.join('; ')}`)
    }
  })
  it('takes one word of 40 million characters', () => {
    const { redactText } = createRedactor()
    assert.equal(redactText(`ghp_${'a'.repeat(40_000_000)}`), '[redacted:github-token]')
  })
})

function toText(piece: string, length: number): string {
  return `${piece.repeat(Math.ceil(length / piece.length))} `
}

function costMs(run: () => void): number {
  let least = Infinity
  for (let i = 0; i < 3; i++) {
    const before = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1000)
  }
  return least
}
