import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { runProgram } from './program.ts'
import { createStopSignals } from './stop-signals.ts'
import { fakeIo } from './testing/fake-io.ts'

const README = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const lines = Array.from(README.matchAll(/^(?:eval "\$\()?toolgate ([^#\n)]+)/gm), ([, words = '']) => words.trim())

async function helpOf(...words: readonly string[]): Promise<string> {
  const io = fakeIo()
  const signals = createStopSignals({ source: new EventEmitter(), exit: () => {}, nowMs: () => 0 })
  const start = () => assert.fail('nothing is started')
  assert.equal(await runProgram([...words, '--help'], { io, version: '1.2.3', signals, start }), 0)
  return io.out()
}

describe('the README of the command', () => {
  it('has lines to try', () => assert.ok(lines.length > 15))

  for (const line of lines)
    it(`has a command and options for: ${line}`, async () => {
      const [own = ''] = line.split(' -- ')
      const [name = '', second = ''] = own.split(' ')
      const help = await helpOf(...(/^(?:create|list|revoke|tail)$/.test(second) ? [name, second] : [name]))
      assert.ok(help.includes(`toolgate ${name}`), help)
      for (const [option] of own.matchAll(/--[a-z-]+/g)) assert.ok(help.includes(option), `${option}\n${help}`)
    })

  it('names every command', async () => {
    const named = new Set(lines.map((line) => line.split(' ')[0]))
    const commands = Array.from(
      (await helpOf()).matchAll(/^(?:[A-Z][a-z]+ +| {8})([a-z-]+) /gm),
      ([, name = '']) => name,
    )
    const others = commands.filter(
      (name) =>
        name !== 'help' &&
        !named.has(name) &&
        !README.includes(`\`${name}\``) &&
        !new RegExp(`# .*\\b${name}\\b`).test(README),
    )
    assert.deepEqual(others, [])
  })
})
