import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { machineClock, readBootId } from './machine.ts'

const MODULE = JSON.stringify(new URL('machine.ts', import.meta.url).href)

async function printed(expression: string): Promise<string> {
  const script = `import { machineClock, readBootId } from ${MODULE}; console.log(${expression})`
  const args = ['--conditions=toolgate-source', '--input-type=module', '-e', script]
  return (await promisify(execFile)(process.execPath, args)).stdout.trim()
}

describe('machineClock', () => {
  it('is the same in every process of the machine', async () => {
    const before = machineClock.monotonicMs()
    const between = Number(await printed('machineClock.monotonicMs()'))
    const after = machineClock.monotonicMs()
    assert.ok(before < between && between < after, `${before} < ${between} < ${after}`)
  })
})

describe('readBootId', () => {
  it('is the same for every process, if the system has one', async () => {
    assert.equal(await printed('readBootId()'), String(readBootId()))
  })
})
