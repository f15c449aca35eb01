import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { startGateway } from '../compose/gateway.ts'
import { surroundings } from '../util/surroundings.ts'
import { loadConfig, readConfig } from './load-config.ts'
import { ConfigFileError } from './problems.ts'
import { parseCommand } from './secret-commands.ts'

describe('parseCommand', () => {
  const read: readonly (readonly [text: string, argv: readonly string[]])[] = [
    ['op read op://vault/item', ['op', 'read', 'op://vault/item']],
    ["op  read 'op://vault/my item'", ['op', 'read', 'op://vault/my item']],
    [`vault kv get -field=token "secret/it's"`, ['vault', 'kv', 'get', '-field=token', "secret/it's"]],
    [`echo '$HOME; rm -rf "/" \\ | &'`, ['echo', '$HOME; rm -rf "/" \\ | &']],
    ["pass ''", ['pass', '']],
  ]
  for (const [text, argv] of read) it(`reads ${text}`, () => assert.deepEqual(parseCommand(text), { argv }))

  for (const text of [
    'a; b',
    'a | b',
    'a $HOME',
    'a `b`',
    'a $(b)',
    'a > b',
    'a ~',
    'a *',
    'a \\b',
    "a 'b",
    'a "b',
    `a 'b'c`,
    "a b'c'",
    'a\tb',
    'a\nb',
    ' a',
    "'' a",
    '',
  ])
    it(`refuses ${JSON.stringify(text)}`, () => assert.ok('problem' in parseCommand(text)))

  it('gives back every word that one kind of quotes can hold', () => {
    const word = fc.string({ unit: 'binary' }).filter((text) => !text.includes("'") && !text.includes('\n'))
    fc.assert(
      fc.property(word, fc.array(word), (arg, args) => {
        const quoted = [arg, ...args].map((one) => `'${one}'`)
        assert.deepEqual(parseCommand(['op', ...quoted].join(' ')), { argv: ['op', arg, ...args] })
      }),
    )
  })
})

function setup(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-command-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'toolgate.yaml')
  /** Each script is run by its name. */
  const script = (name: string, text: string) => {
    writeFileSync(path.join(folder, `${name}.cjs`), text)
    return `\${command:${process.execPath} ${name}.cjs}`
  }
  const write = (keys: readonly string[], more = '') => {
    const callers = keys.map((key, i) => `  - { key: "${key}", user: u${i} }`).join('\n')
    writeFileSync(file, `servers: {}\ncallers:\n${callers}\npolicy: [{ allow: ["*"] }]\n${more}`)
  }
  const problemsOf = async (): Promise<readonly string[]> => {
    try {
      await readConfig(file, { env: {} })
    } catch (error) {
      assert.ok(error instanceof ConfigFileError)
      return error.problems.map(({ line, column, path: at, message }) => `${line}:${column}: ${at}: ${message}`)
    }
    return []
  }
  return { folder, file, script, write, problemsOf }
}

const NODE = path.basename(process.execPath)

describe('${command:…}', () => {
  it('is what the command wrote, without its last line feed, and a secret; each runs once in the folder of the file', async (t) => {
    const { folder, file, script, write } = setup(t)
    const key = script('key', `require('fs').appendFileSync('runs', 'x'); console.log('secret-of-vera')`)
    write([`${key}-a`, `${key}-b`])
    const { callers, secrets, notRun } = await readConfig(file, { env: {} })
    assert.deepEqual(
      [callers.map(({ demoKey }) => demoKey), notRun],
      [['secret-of-vera-a', 'secret-of-vera-b'], undefined],
    )
    assert.ok(secrets?.includes('secret-of-vera'))
    assert.equal(readFileSync(path.join(folder, 'runs'), 'utf8'), 'x')
  })

  it('that fails is a problem with its line and column, the program and how it ended, and nothing that it wrote', async (t) => {
    const { script, write, problemsOf } = setup(t)
    const says = `console.log('secret-1'); console.error('secret-2');`
    for (const [key, problem] of [
      [script('fails', `${says} process.exitCode = 3`), `the command ${NODE} exits with code 3`],
      [script('dies', `${says} process.kill(process.pid)`), `the command ${NODE} was ended by SIGTERM`],
      [script('silent', `console.error('secret-2')`), `the command ${NODE} is empty`],
      [script('floods', `process.stdout.write('s'.repeat(70000))`), `the command ${NODE} writes more than 64 KiB`],
      [script('binary', `process.stdout.write(Buffer.from([255, 254]))`), `the command ${NODE} is not text`],
      ['${command:no-such-program secret-3}', 'the command no-such-program is not found'],
    ] as const) {
      write(['first-first', key])
      assert.deepEqual(await problemsOf(), [`4:13: callers[1].key: ${problem}`])
    }
  })

  it('that does not end is ended', async (t) => {
    const { script, write, problemsOf } = setup(t)
    write([script('hangs', 'setInterval(() => {}, 1000)')], 'secretCommands: { timeoutMs: 50 }\n')
    assert.deepEqual(await problemsOf(), [`3:13: callers[0].key: the command ${NODE} was ended at its deadline`])
  })

  it('has its surroundings and the variables of secretCommands, and nothing else', async (t) => {
    const { file, script, write } = setup(t)
    const names = script(
      'names',
      `console.log(Object.keys(process.env).filter((name) => !name.startsWith('__')).sort().join())`,
    )
    write([names], 'secretCommands: { env: { VAULT_TOKEN: "${TOKEN}" } }\n')
    const { callers } = await readConfig(file, { env: { TOKEN: 'x', OTHER: 'y' } })
    assert.equal(callers[0]?.demoKey, [...Object.keys(surroundings()), 'VAULT_TOKEN'].toSorted().join())
  })

  it('does not run where the file has any other problem, and cannot stand where commands are set up', async (t) => {
    const { folder, script, write, problemsOf } = setup(t)
    const key = script('key', `require('fs').writeFileSync('ran', ''); console.log('secret-of-vera')`)
    for (const [more, problem] of [
      ['polcy: []\n', /polcy: unknown key/],
      [
        `secretCommands: { env: { A: "${key}" } }\n`,
        /secretCommands\.env\.A: found \$\{command:.*where no command can be/,
      ],
      [`publicUrl: "\${command:a | b}"\n`, /publicUrl: the command cannot be read at "\| b": put each word/],
    ] as const) {
      write([key], more)
      const problems = await problemsOf()
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems.join(), problem)
      assert.equal(existsSync(path.join(folder, 'ran')), false)
    }
  })

  it('is checked once it has run, wherever it stands', async (t) => {
    const { script, write, problemsOf } = setup(t)
    const [short, url] = [script('short', `console.log('short')`), script('url', `console.log('not a url')`)]
    write([short], `publicUrl: "${url}"\n`)
    const [first = '', second = ''] = await problemsOf()
    assert.match(first, /^3:12: callers\[0\]\.key: found text of 5 characters, expected a key of at least 8/)
    assert.match(second, /publicUrl: found .*expected/)
    assert.doesNotMatch(second, /not a url/)
  })

  it('is not run by loadConfig: such a configuration has no key in its place, and starts no gateway', async (t) => {
    const { folder, file, script, write } = setup(t)
    const key = script('key', `require('fs').writeFileSync('ran', ''); console.log('secret-of-vera')`)
    const other = script('other', `console.log('secret-of-udo-1')`)
    write([key, other, 'plain-plain'], `publicUrl: "${script('url', `console.log('https://a.example')`)}"\n`)
    const config = loadConfig(file, { env: {} })
    assert.equal(existsSync(path.join(folder, 'ran')), false)
    assert.deepEqual(config.notRun, [NODE, NODE, NODE])
    assert.deepEqual(
      config.callers.map(({ demoKey }) => demoKey),
      [undefined, undefined, 'plain-plain'],
    )
    await assert.rejects(startGateway(config), { code: 'config_invalid', message: /secretCommands: were not run/ })
  })
})
