import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { tempFolder } from './support/gateway.ts'

/** The example of a policy with tests, through the command, as a CI server runs it; and with its real server. */

const BIN = path.join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const EXAMPLE = path.join(import.meta.dirname, '../examples/policy-tests')
const { TOOLGATE_URL: _url, TOOLGATE_KEY: _key, PORT: _port, ...env } = process.env
const folder = tempFolder()
after(() => folder.remove())

const at = (name: string) => path.join(folder.path, name)
const edit = (name: string, from: string, to: string) => {
  const text = readFileSync(at(name), 'utf8')
  assert.ok(text.includes(from), `${name} has ${from}`)
  writeFileSync(at(name), text.replace(from, to))
}

function toolgate(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const given = ['--conditions=toolgate-source', BIN, ...args]
    execFile(process.execPath, given, { cwd: folder.path, env }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    )
  })
}

before(() => {
  for (const name of ['toolgate.yaml', 'policy.test.yaml', 'catalog.json', 'workspace'])
    cpSync(path.join(EXAMPLE, name), at(name), { recursive: true })
})

describe('a policy with tests', () => {
  it('has the catalog that its server offers, byte for byte', async () => {
    const { code, out, err } = await toolgate('snapshot', '-o', 'again.json')
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, /made {2}again\.json {2}\d+ items of 1 server/)
    if (process.env['TOOLGATE_UPDATE']) cpSync(at('again.json'), path.join(EXAMPLE, 'catalog.json'))
    assert.equal(readFileSync(at('again.json'), 'utf8'), readFileSync(path.join(EXAMPLE, 'catalog.json'), 'utf8'))
  })

  it('passes, on the recorded catalog and on what the server offers now', async () => {
    const { code, out, err } = await toolgate('test')
    assert.deepEqual([code, err], [0, ''])
    assert.match(out, /^policy\.test\.yaml\n {2}ok {4}A viewer sees what reads/)
    assert.match(out, /\n6 tests, all passed\n/)
    assert.doesNotMatch(out, /No test reaches/)
    const text = readFileSync(at('policy.test.yaml'), 'utf8')
    writeFileSync(at('some.yaml'), text.slice(0, text.indexOf('  - shows: Nobody writes')))
    const some = await toolgate('test', 'some.yaml')
    assert.match(some.out, /2 tests, all passed\nNo test reaches:\n(?: {2}toolgate\.yaml:\d+:\d+: \S+ \S+\n)+$/)
    assert.match(some.out, / {2}toolgate\.yaml:30:9: roles#read-then-write tag:write\n/)
    assert.match(some.out, / {2}toolgate\.yaml:33:9: workspace#deny\[0\] files:\*\n/)
    const live = await toolgate('test', '--live')
    assert.deepEqual([live.code, live.out], [0, out])
  })

  it('fails once the policy grants more, with the line, what was found and why', async () => {
    edit('toolgate.yaml', "!within(input.path, '${configDir}/workspace')", 'false')
    const { code, out } = await toolgate('test')
    assert.equal(code, 1)
    assert.match(
      out,
      / {2}FAIL {2}Nobody writes anywhere else\n {8}policy\.test\.yaml:25:15: expect\.call files:write_file: expected deny, found allow\n/,
    )
    assert.match(out, /6 tests, 1 failed\n/)
    const tap = await toolgate('test', '--tap')
    assert.match(
      tap.out,
      /^TAP version 14\n1\.\.6\nok 1 - .*\nok 2 - .*\nnot ok 3 - policy\.test\.yaml: Nobody writes anywhere else\n/,
    )
    assert.equal(tap.code, 1)
    const junit = await toolgate('test', '--junit')
    assert.match(junit.out, /<testsuite name="policy\.test\.yaml" tests="6" failures="1">/)
    assert.match(junit.out, /<failure message="expect\.call files:write_file: expected deny, found allow">/)
    assert.equal(junit.code, 1)
    edit(
      'toolgate.yaml',
      'has(input.path) && false',
      "has(input.path) && !within(input.path, '${configDir}/workspace')",
    )
  })

  it('tests nothing where a name is misspelt', async () => {
    edit('policy.test.yaml', 'hides: ["files:write_file"', 'hides: ["files:wirte_file"')
    const { code, out, err } = await toolgate('test')
    assert.deepEqual([code, out], [2, ''])
    assert.match(
      err,
      /policy\.test\.yaml:14:15: tests\[0\]\.expect\.hides\[0\]: unknown tool "files:wirte_file"; did you mean "files:write_file"\?/,
    )
    const asJson = await toolgate('test', '--json')
    assert.equal((JSON.parse(asJson.err) as { error: { problems: { line: number }[] } }).error.problems[0]?.line, 14)
    edit('policy.test.yaml', 'hides: ["files:wirte_file"', 'hides: ["files:write_file"')
  })

  it('says so where there is no test, and where a server does not start', async () => {
    const nothing = await toolgate('test', 'workspace')
    assert.equal(nothing.code, 2)
    assert.match(nothing.err, /There are no tests: no file in workspace ends with \.test\.yaml/)
    edit(
      'toolgate.yaml',
      '"@modelcontextprotocol/server-filesystem"\n',
      '"@modelcontextprotocol/server-filesystem"\n    startTimeoutMs: 60000\n',
    )
    edit('toolgate.yaml', 'args: [./workspace]', 'args: [./no-such-folder]')
    const down = await toolgate('snapshot')
    assert.equal(down.code, 1)
    assert.match(down.err, /Not all servers have started: files \(/)
    assert.equal(down.out, '')
  })
})

describe('two policies', () => {
  it('are compared: yes, no with the input that now passes, or what cannot be compared', async () => {
    const text = readFileSync(at('toolgate.yaml'), 'utf8')
    const write = (name: string, from: string, to: string) => {
      assert.ok(text.includes(from))
      writeFileSync(at(name), text.replace(from, to))
    }
    write('tighter.yaml', '- { match: tag:write, when', '- { match: files:edit_file, when')
    write('looser.yaml', "!within(input.path, '${configDir}/workspace')", "!within(input.path, '${configDir}')")
    write('other.yaml', 'files:write_file:5/60', 'files:write_file:9/60')
    const yes = await toolgate('compare', 'toolgate.yaml', 'tighter.yaml')
    assert.deepEqual([yes.code, yes.out, yes.err], [0, 'yes  tighter.yaml grants no more than toolgate.yaml\n', ''])
    const no = await toolgate('compare', 'toolgate.yaml', 'looser.yaml')
    assert.equal(no.code, 1)
    assert.match(no.out, /^no {2}looser\.yaml grants more than toolgate\.yaml\n/)
    assert.match(
      no.out,
      /operator: a call of files:write_file with \{.*"path":".*\/workspacex?"\} is allow, and was deny\n/,
    )
    const unknown = await toolgate('compare', 'toolgate.yaml', 'other.yaml', '--json')
    assert.equal(unknown.code, 1)
    assert.deepEqual(JSON.parse(unknown.out), {
      grantsNoMore: 'unknown',
      counterexamples: [],
      notCompared: [],
      sections: ['limits'],
    })
    const broken = await toolgate('compare', 'toolgate.yaml', '--catalog', 'policy.test.yaml')
    assert.equal(broken.code, 2)
    assert.match(broken.err, /policy\.test\.yaml:1:1: /)
  })
})
