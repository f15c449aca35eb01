import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { createLineSplitter } from './lines.ts'

function split(chunks: readonly Buffer[], maxBytes = 1_000): string[] {
  const lines: string[] = []
  const push = createLineSplitter(maxBytes, (line) => lines.push(line))
  for (const chunk of chunks) push(chunk)
  return lines
}

describe('createLineSplitter', () => {
  it('gives the same lines however the bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll(/[\r\n]/g, ' '))),
        fc.integer({ min: 1, max: 7 }),
        (lines, size) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
          const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
            bytes.subarray(i * size, (i + 1) * size),
          )
          assert.deepEqual(split(chunks), lines)
        },
      ),
    )
  })

  it('takes CRLF off too', () => {
    assert.deepEqual(split([Buffer.from('a\r\nb\n'), Buffer.from('c\r'), Buffer.from('\n')]), ['a', 'b', 'c'])
  })

  it('refuses a line that is too long before it has ended', () => {
    assert.throws(() => split([Buffer.alloc(600), Buffer.alloc(600)]), { code: 'upstream_too_large' })
  })
})
