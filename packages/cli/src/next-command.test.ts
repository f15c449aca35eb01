import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { nextCommand, quoted } from './next-command.ts'

describe('nextCommand', () => {
  it('repeats the options that were given, but not the default configuration', () => {
    assert.equal(nextCommand('halts'), 'toolgate halts')
    assert.equal(nextCommand('halts', { config: 'toolgate.yaml' }), 'toolgate halts')
    assert.equal(
      nextCommand('halts', { url: 'http://127.0.0.1:9000', config: 'a b.yaml', tenant: "o'x" }),
      `toolgate halts --config 'a b.yaml' --url http://127.0.0.1:9000 --tenant 'o'\\''x'`,
    )
  })

  it('never prints a key', () => {
    assert.equal(nextCommand('halts', { key: 'secret-key-1' }), 'TOOLGATE_KEY=… toolgate halts')
  })
})

describe('quoted', () => {
  it('keeps a text one word of a shell', () => {
    for (const plain of ['files:read_file', './a/b.yaml', 'vera@example.com']) assert.equal(quoted(plain), plain)
    for (const text of ['files:*', 'a b', '$(rm)', '`x`', ';', '', '~', '<user>'])
      assert.equal(quoted(text), `'${text}'`)
    assert.equal(quoted('a\u001b[2Jb'), String.raw`'a\u001b[2Jb'`)
  })
})

/** Files whose texts are about commands in general, or are written where no options were given. */
const GENERAL: ReadonlySet<string> = new Set([
  'commands/add.ts',
  'commands/audit-shared.ts',
  'commands/completion.ts',
  'commands/demo-servers.ts',
  'commands/first-test.ts',
  'commands/import.ts',
  'commands/init.ts',
  'commands/missing-records.ts',
  'commands/try.ts',
  'project/config-file.ts',
  'project/init-file.ts',
])
/** Lines that print no command to run next: names of programs, and commands that have no configuration yet. */
const NOT_NEXT =
  /"toolgate <command> --help" has|applicationName|name: 'toolgate call'|applyChanges\(|starts "toolgate stdio"|"toolgate serve --config <file>" or|'toolgate init'|"toolgate serve --config <file>"/

describe('the texts of the commands', () => {
  it('print commands by nextCommand only, so that they repeat the options', () => {
    const root = import.meta.dirname
    const wrong = globSync('{*,commands/*,project/*,clients/*,policy-tests/*}.ts', { cwd: root })
      .filter((file) => !file.endsWith('.test.ts') && !GENERAL.has(file) && file !== 'next-command.ts')
      .flatMap((file) =>
        readFileSync(path.join(root, file), 'utf8')
          .split('\n')
          .flatMap((line, i) =>
            /['"`](?:[^'"`]*\W)?toolgate [a-z]/.test(line) && !/^\s*(?:\/?\*|\/\/)/.test(line) && !NOT_NEXT.test(line)
              ? [`${file}:${i + 1}: ${line.trim()}`]
              : [],
          ),
      )
    assert.deepEqual(wrong, [])
  })
})
