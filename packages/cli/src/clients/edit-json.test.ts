import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'jsonc-parser'
import { setMember } from './edit-json.ts'

const FILE = `{
  // mine
  "mcpServers": {
    "a": { "command": "x", "args": ["1", "2"] }, // first
    "b": { "url": "u" } // last
  },
  "other": [1,2]
}
`

describe('setMember', () => {
  it('adds, and leaves comments and layout as they are', () => {
    assert.equal(
      setMember(FILE, ['mcpServers'], 'c', { url: 'v' }),
      FILE.replace(
        '"b": { "url": "u" } // last\n',
        '"b": { "url": "u" }, // last\n    "c": {\n      "url": "v"\n    }\n',
      ),
    )
  })

  it('replaces a value alone', () => {
    assert.equal(
      setMember(FILE, ['mcpServers'], 'b', { url: 'v' }),
      FILE.replace('{ "url": "u" }', '{\n      "url": "v"\n    }'),
    )
  })

  it('removes the line of a member, the first, one between and the last', () => {
    assert.equal(
      setMember(FILE, ['mcpServers'], 'a', undefined),
      FILE.replace('    "a": { "command": "x", "args": ["1", "2"] }, // first\n', ''),
    )
    assert.equal(
      setMember(FILE, ['mcpServers'], 'b', undefined),
      FILE.replace('    "b": { "url": "u" } // last\n', '')
        .replace(']}, //', '] } //')
        .replace(' }, // first', ' } // first'),
    )
    assert.equal(setMember(FILE, ['mcpServers'], 'z', undefined), FILE)
  })

  const texts: readonly [what: string, text: string][] = [
    ['an empty object', '{}'],
    ['an empty section', '{"mcpServers":{}}'],
    ['a section with a comment only', '{\n\t"mcpServers": {\n\t\t// none yet\n\t}\n}\n'],
    ['one line', '{"mcpServers":{"a":{"command":"x"}},"k":1}'],
    ['trailing commas', '{\n  "mcpServers": {\n    "a": {},\n  },\n}\n'],
    ['line ends of Windows', '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n'],
    ['names like those of objects', '{"mcpServers":{"toString":{},"constructor":{}}}'],
  ]
  for (const [what, text] of texts)
    it(`gives what is meant in ${what}, and undoes it`, () => {
      const added = setMember(text, ['mcpServers'], 'new', { command: 'x', args: ['a, b', '// c'] })
      const parsed = parse(added, [], { allowTrailingComma: true }) as Record<string, Record<string, unknown>>
      assert.deepEqual(parsed['mcpServers']?.['new'], { command: 'x', args: ['a, b', '// c'] })
      if (text.includes('\r\n')) assert.ok(!/[^\r]\n/.test(added), 'line ends')
      const removed = setMember(added, ['mcpServers'], 'new', undefined)
      const before = parse(text, [], { allowTrailingComma: true }) as Record<string, object>
      assert.deepEqual(parse(removed, [], { allowTrailingComma: true }), { mcpServers: {}, ...before })
    })

  it('changes a section within others, and nothing beside it', () => {
    const path = ['projects', '/work/my app', 'mcpServers']
    const text =
      '{\n  "projects": {\n    "/work/my app": {\n      "mcpServers": {\n        "a": {} // mine\n      }\n    },\n    "/other": { "mcpServers": { "a": {} } }\n  }\n}\n'
    const removed = setMember(text, path, 'a', undefined)
    assert.equal(removed, text.replace('        "a": {} // mine\n', ''))
    const added = setMember(removed, path, 'b', { command: 'x' })
    assert.deepEqual(parse(added), {
      projects: { '/work/my app': { mcpServers: { b: { command: 'x' } } }, '/other': { mcpServers: { a: {} } } },
    })
    assert.deepEqual(parse(setMember('{"other":1}', path, 'b', { command: 'x' })), {
      other: 1,
      projects: { '/work/my app': { mcpServers: { b: { command: 'x' } } } },
    })
  })
})
