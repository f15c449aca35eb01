import assert from 'node:assert/strict'
import { it } from 'node:test'
import { boundLines } from './bounded-lines.ts'

it('boundLines writes ten lines a minute, and how many it left out', () => {
  let nowMs = 0
  const lines: string[] = []
  const log = boundLines((line) => lines.push(line), { monotonicMs: () => nowMs })
  for (let i = 0; i < 1000; i++) log(`line ${i}`)
  assert.deepEqual([lines.length, lines.at(-1)], [10, 'line 9'])
  nowMs = 60_000
  log('later')
  log('and again')
  assert.deepEqual(lines.slice(10), ['later (and 990 lines before, left out)', 'and again'])
})
