import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'

const MODULE = path.join(import.meta.dirname, 'young-generation.ts')

/** Runs a program in which 4 MB survive again and again. Returns the MB of its young generation at the end. */
function youngAfter(start: string): number {
  const program = `import { getHeapSpaceStatistics } from 'node:v8'
    import { setImmediate } from 'node:timers/promises'
    import { growYoungGeneration, keepYoungGenerationSmall } from ${JSON.stringify(MODULE)}
    ${start}
    const kept = []
    for (let i = 0; i < 400_000; i++) {
      kept[i % 40_000] = { i, list: [i, i] }
      if (i % 2000 === 0) await setImmediate()
    }
    console.log(getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').space_size / 1024 / 1024)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  assert.equal(stderr, '')
  return Number(stdout)
}

describe('the young generation', () => {
  it('stays small while a command starts', () => {
    const young = youngAfter('keepYoungGenerationSmall()')
    // While it collects, V8 counts pages of both halves: up to 4.5 MB, on a busy machine at the end of the program too.
    assert.ok(young < 6, `${young} MB`)
  })

  it('grows with the load, up to its bound', () => {
    const young = youngAfter('keepYoungGenerationSmall(); growYoungGeneration(8 * 1024 * 1024)')
    // V8 may count some pages of 256 KiB more.
    assert.ok(young >= 8 && young < 10, `${young} MB`)
    assert.ok(youngAfter('') >= 10, 'it would grow further')
  })
})
