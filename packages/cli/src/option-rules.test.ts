import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import { Command, type Option } from 'commander'
import { COMMANDS } from './command-table/index.ts'
import type { CommandRow } from './command-table/row.ts'
import { CliError } from './exit.ts'
import { checkOptions, type OptionRule } from './option-rules.ts'
import { runProgram } from './program.ts'
import { createStopSignals } from './stop-signals.ts'
import { fakeIo } from './testing/fake-io.ts'

async function run(args: readonly string[]) {
  const io = fakeIo({ TOOLGATE_URL: 'http://127.0.0.1:1' })
  const signals = createStopSignals({ source: new EventEmitter(), exit: () => {}, nowMs: () => 0 })
  const code = await runProgram(args, { io, version: '1.2.3', signals, start: () => assert.fail('nothing is started') })
  return { code, out: io.out(), err: io.err() }
}

function commandOf({ define }: CommandRow): Command {
  const command = new Command('it').exitOverride().action(() => {})
  define(command)
  return command
}

function parse(row: CommandRow, words: readonly string[]): Command {
  const command = commandOf(row)
  const needed = command.registeredArguments.filter(({ required }) => required)
  return command.parse([...words, ...needed.map(() => 'x')], { from: 'user' })
}

/** Texts, whole numbers and times are all taken for one of these. */
const VALUES = ['1', '2026-01-01', '2h']

function wordsOf(command: Command, flag: string): readonly string[] {
  const option = command.options.find(({ long }) => long === flag)
  assert.ok(option, `${flag} is not an option`)
  return option.required ? [flag, valueOf(option)] : [flag]
}

function valueOf({ argChoices, parseArg }: Option): string {
  if (argChoices) return argChoices[0] ?? ''
  const isTaken = (value: string) => {
    try {
      parseArg?.(value, undefined)
      return true
    } catch {
      return false
    }
  }
  return VALUES.find(isTaken) ?? ''
}

function problemOf(row: CommandRow, words: readonly string[], rules: readonly OptionRule[]): string | undefined {
  const command = parse(row, words)
  try {
    checkOptions(command, rules)
    return undefined
  } catch (error) {
    assert.ok(error instanceof CliError && error.exit === 'usage', String(error))
    return error.message
  }
}

const rows = COMMANDS.filter((row) => row.run)

describe('a misspelt option', () => {
  for (const row of rows) {
    const options = commandOf(row).options.filter(({ hidden, long }) => !hidden && (long?.length ?? 0) > 4)
    it(`of ${row.name} is refused, and the likely one named`, async () => {
      for (const { long = '' } of options) {
        const misspelt = long.slice(0, -1)
        if (options.some((other) => other.long === misspelt)) continue
        const { code, out, err } = await run([...row.name.split(' '), misspelt])
        assert.deepEqual([code, out], [2, ''], long)
        const [first, hint = ''] = err.split('\n')
        assert.equal(first, `error  unknown option '${misspelt}'`)
        assert.match(hint, new RegExp(`^Did you mean (one of )?.*${long}\\b`), `${row.name} ${misspelt}`)
      }
    })
  }

  it('is named to programs, too', async () => {
    const { err } = await run(['what-if', '--polcy', 'x', '--json'])
    assert.deepEqual(JSON.parse(err).error, {
      exit: 2,
      code: 'usage',
      message: "unknown option '--polcy'",
      hint: 'Did you mean --policy?',
    })
  })
})

describe('the rules of options', () => {
  for (const row of rows)
    for (const rule of row.rules ?? [])
      it(`${row.name}: ${rule.join(' ')}`, () => {
        const command = commandOf(row)
        const words = (flag: string) => wordsOf(command, flag)
        if (rule[0] === 'needs') {
          const [, ...flags] = rule
          const problem = problemOf(row, [], [rule]) ?? ''
          for (const flag of flags) {
            assert.ok(problem.includes(flag), problem)
            assert.equal(problemOf(row, words(flag), [rule]), undefined)
          }
          return
        }
        const [flag, kind, ...others] = rule
        const isAlone = problemOf(row, words(flag), [rule])
        if (kind === 'needs') for (const name of [flag, ...others]) assert.ok(isAlone?.includes(name), isAlone)
        else assert.equal(isAlone, undefined)
        for (const other of others) {
          assert.equal(problemOf(row, words(other), [rule]), undefined)
          const both = problemOf(row, [...words(flag), ...words(other)], [rule])
          if (kind === 'needs') assert.equal(both, undefined)
          else for (const name of [flag, other]) assert.ok(both?.includes(name), both)
        }
      })

  const cases: readonly (readonly [line: string, problem: string])[] = [
    ['test --tap --junit', 'Give --tap or --junit, not both.'],
    ['test --since 3d', '--since needs --audit.'],
    ['test --key k', '--key needs --audit.'],
    ['connect cursor --key k', '--key needs --http or --url.'],
    ['connect cursor --undo --dry-run', 'Give --undo or --dry-run, not both.'],
    ['import cursor --undo --no-start', 'Give --undo or --no-start, not both.'],
    ['keys create', 'keys create needs --user <user>.'],
    ['audit query --since 2026-03-01 --until 2026-02-01', '--since must be before --until.'],
    ['audit query --after 9 --before 9', '--after must be before --before.'],
    ['approvals --status approved --all', 'Give --status or --all, not both.'],
    ['tools --all', '--all needs --as or --caller.'],
    ['audit tail --user --json', '--user has no value: the next word is the option --json.'],
    ['audit tail --user -n', '--user has no value: the next word is the option -n.'],
    ['audit tail --user=', '--user is empty.'],
    ['add x --env= http://127.0.0.1', '--env is empty.'],
  ]
  for (const [line, problem] of cases)
    it(`say of "${line}" what is wrong`, async () => {
      const { code, out, err } = await run(line.split(' '))
      const isJson = line.includes('--json')
      const message = isJson ? (JSON.parse(err) as { error: { message: string } }).error.message : err
      assert.deepEqual([code, out, message], [2, '', isJson ? problem : `error  ${problem}\n`])
    })

  it('count no default as given', () => {
    const row = rows.find(({ name }) => name === 'approvals list')
    assert.ok(row)
    assert.equal(problemOf(row, ['--all'], row.rules ?? []), undefined)
  })
})
