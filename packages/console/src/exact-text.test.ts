import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { toJsonParts, toPrettyJson, toSegments } from './exact-text.ts'

describe('toSegments', () => {
  it('leaves visible text unchanged, in any script', () => {
    for (const text of ['files:read_file', 'Grüße, 世界 مرحبا', 'a b\nc', 'née ❤️ 👍', '<script>alert(1)</script>'])
      assert.deepEqual(toSegments(text), [{ kind: 'text', text }], text)
    assert.deepEqual(toSegments(''), [])
  })

  it('marks a bidirectional override with its code point and name', () => {
    assert.deepEqual(toSegments('report\u202Efdp.exe'), [
      { kind: 'text', text: 'report' },
      { kind: 'mark', code: 'U+202E', name: 'right-to-left override' },
      { kind: 'text', text: 'fdp.exe' },
    ])
  })

  it('marks all other invisible characters', () => {
    const unseen = [
      0x00, 0x07, 0x09, 0x0d, 0x1b, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x17b4, 0x180b, 0x2003, 0x200b,
      0x200d, 0x2028, 0x2062, 0x2066, 0x2800, 0x3000, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xfff9, 0xd800, 0xdfff, 0xe000,
      0xe0041, 0xe0101, 0x10ffff,
    ]
    for (const codePoint of unseen) {
      const [before, mark, after] = toSegments(`a${String.fromCodePoint(codePoint)}b`)
      const code = `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`
      assert.ok(before?.kind === 'text' && after?.kind === 'text' && mark?.kind === 'mark' && mark.code === code, code)
    }
  })

  it('loses nothing: the joined segments are the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const parts = toSegments(text).map((one) =>
          one.kind === 'text' ? one.text : String.fromCodePoint(Number.parseInt(one.code.slice(2), 16)),
        )
        assert.equal(parts.join(''), text)
      }),
    )
  })
})

describe('toJsonParts', () => {
  it('splits strings of several lines, at any place', () => {
    assert.deepEqual(toJsonParts({ a: 'x\ny', b: ['\n', 'one line'] }), [
      { kind: 'text', text: '{\n  "a": ' },
      { kind: 'lines', lines: ['x', 'y'] },
      { kind: 'text', text: ',\n  "b": [\n    ' },
      { kind: 'lines', lines: ['', ''] },
      { kind: 'text', text: ',\n    "one line"\n  ]\n}' },
    ])
  })

  it('leaves keys, and a backslash before an n, unchanged', () => {
    assert.deepEqual(toJsonParts({ 'a\nb': 'c\\n' }), [{ kind: 'text', text: '{\n  "a\\nb": "c\\\\n"\n}' }])
  })

  it('shows a text and its replacement as a difference, wherever they are', () => {
    const edits = [{ oldText: 'a\nb', newText: 'a\nc' }]
    assert.deepEqual(toJsonParts({ path: 'x', edits }), [
      { kind: 'text', text: '{\n  "path": "x",\n  "edits": [\n    {\n      "oldText" → "newText": ' },
      {
        kind: 'diff',
        names: ['oldText', 'newText'],
        lines: [
          { kind: 'same', text: 'a' },
          { kind: 'removed', text: 'b' },
          { kind: 'added', text: 'c' },
        ],
      },
      { kind: 'text', text: '\n    }\n  ]\n}' },
    ])
  })

  it('shows no difference where the texts are equal, or are no texts', () => {
    for (const input of [
      { old_string: 'a', new_string: 'a' },
      { old_string: 'a', new_string: 1 },
      { before: 'a' },
      { after: 'b' },
    ])
      assert.deepEqual(toJsonParts(input), [{ kind: 'text', text: JSON.stringify(input, null, 2) }])
  })

  it('leaves nothing out: the joined parts are the same JSON', () => {
    const odd = fc.string({ unit: fc.constantFrom('\n', '"', '\\', ',', ':', 'n', 'a') })
    fc.assert(
      fc.property(fc.jsonValue(), odd, odd, odd, (value, text, old, now) => {
        const input = { text, value, [text]: [text], edit: { old_str: old, new_str: now } }
        const json = toJsonParts(input).map((part) => {
          if (part.kind === 'text') return part.text.replace(/("old_str") → "new_str": $/, '$1: ')
          if (part.kind === 'lines') return JSON.stringify(part.lines.join('\n'))
          const [before, after] = (['removed', 'added'] as const).map((kind) =>
            JSON.stringify(
              part.lines
                .filter((line) => line.kind === 'same' || line.kind === kind)
                .map((line) => line.text)
                .join('\n'),
            ),
          )
          return `${before},\n    "new_str": ${after}`
        })
        assert.equal(json.join(''), JSON.stringify(input, null, 2))
      }),
    )
  })

  it('leaves a key as it is after a backslash was the key of an earlier value', () => {
    for (const key of ['\\', '\\', '\\', '\n', '"', '\t', 'a\\', 'a\n']) {
      const input = { text: 'x', value: {}, [key]: ['a'] }
      assert.deepEqual(toJsonParts(input), [{ kind: 'text', text: JSON.stringify(input, null, 2) }])
    }
  })
})

describe('toPrettyJson', () => {
  it('indents, and returns a word for undefined', () => {
    assert.equal(toPrettyJson({ path: 'a' }), '{\n  "path": "a"\n}')
    assert.equal(toPrettyJson(undefined), 'nothing')
  })
})
