import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
import { parsePolicies } from './parse.ts'
import { lintPatterns } from './pattern-lint.ts'
import type { Policy } from './policy.ts'

const textsOf = (policy: Policy) => lintPatterns(parsePolicies(policy, new Map())).map(({ text }) => text)

describe('lintPatterns', () => {
  const evaded = [
    "like(input.command, 'rm *')",
    "input.command.startsWith('rm ')",
    "input.command.contains('rm')",
    "input.file.endsWith('.env')",
    "has(input.command) && (input.force || like(input.command, 'rm *'))",
    "input.to.exists(to, like(to, '*@evil.test'))",
    "input.path == '/etc/passwd'",
    "input.path.startsWith('/etc')",
    "input.url.startsWith('https://evil.test/')",
  ]
  for (const input of evaded) {
    it(`warns of ${input} where the rule gets stricter`, () => {
      assert.equal(textsOf({ deny: [{ match: '*', input }] }).length, 1)
      assert.equal(textsOf({ ask: [{ match: '*', input }] }).length, 1)
      assert.equal(textsOf({ allow: [{ match: '*', input: `!(${input})` }] }).length, 1)
    })
  }

  it('shows the safe shape', () => {
    assert.deepEqual(textsOf({ deny: [{ match: '*', input: "like(input.command, 'rm *')" }] }), [
      "like(input.command, 'rm *') is passed by another spelling of the same text, such as another case or a space more; write what is allowed instead: an allow clause, or a deny of what does not match",
    ])
    assert.deepEqual(textsOf({ allow: [{ match: '*', input: "input.url.startsWith('https://corp.example')" }] }), [
      "input.url.startsWith('https://corp.example') also holds for places elsewhere, by what follows; compare places with host(input.url) or within()",
    ])
  })

  it('warns of beginnings of paths and URLs in an allow', () => {
    for (const input of ["input.path.startsWith('/w/')", "like(input.url, 'https://example.org*')"]) {
      assert.equal(textsOf({ allow: [{ match: '*', input }] }).length, 1, input)
      assert.equal(textsOf({ deny: [{ match: '*', input: `!(${input})` }] }).length, 1, input)
    }
  })

  it('does not warn of allowlists, plain values and facts that the gateway knows itself', () => {
    for (const input of [
      "!like(input.to, '*@example.org')",
      "!input.to.all(to, like(to, '*@example.org'))",
      "input.mode == 'force'",
      "!(input.path.startsWith('/') && within(input.path, '/w'))",
      "!(within(input.path, '/w') && like(input.path, '/w/*.md'))",
      "host(input.url) == 'evil.test'",
      "like(caller.user, '*@example.org')",
    ])
      assert.deepEqual(textsOf({ deny: [{ match: '*', input }] }), [], input)
  })

  it('is a warning of a gate, once', () => {
    const warnings: string[] = []
    const gate = createGate({
      tools: [defineTool({ name: 'run' })],
      policy: { deny: [{ match: 'run', input: "like(input.command, 'rm *')" }] },
      onWarning: ({ code, path }) => void warnings.push(`${code} ${path}`),
    })
    assert.deepEqual(warnings, ['pattern_evadable policy[0].deny[0]'])
    assert.equal(gate.lint().filter(({ code }) => code === 'pattern_evadable').length, 1)
  })
})
