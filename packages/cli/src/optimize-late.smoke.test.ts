import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'

const MODULE = path.join(import.meta.dirname, 'optimize-late.ts')

/** Calls of an inlined function are not counted as its own. */
const FLAGS = ['--trace-opt', '--no-maglev-inlining', '--no-turbo-inlining']

/** Runs a function so often, and returns which compilers V8 has given it to. */
function compilersAfter(calls: number, start: string): ReadonlySet<string> {
  const program = `import { optimizeLate } from ${JSON.stringify(MODULE)}
    import { setImmediate } from 'node:timers/promises'
    ${start}
    function counted(a) { return (a * 31 + 7) % 1000 + a * 3 }
    for (let i = 0; i < ${calls}; i++) {
      counted(i)
      if (i % 500 === 0) await setImmediate()
    }`
  const options = { encoding: 'utf8' } as const
  const { stdout, stderr } = spawnSync(process.execPath, [...FLAGS, '--input-type=module', '-e', program], options)
  assert.equal(stderr, '')
  const marked = stdout.matchAll(/marking .*<JSFunction counted.*> for optimization to (\w+)/g)
  return new Set(Array.from(marked, ([, compiler = '']) => compiler))
}

describe('optimizeLate', () => {
  it('leaves a function of some thousand calls to the quick compilers', () => {
    // Without it, the slow compiler comes some thousand calls after Maglev: when, depends on the machine.
    assert.deepEqual(compilersAfter(19_000, 'optimizeLate()'), new Set(['MAGLEV']))
  })

  it('gives a function of many calls to the best one', () => {
    assert.deepEqual(compilersAfter(400_000, 'optimizeLate()'), new Set(['MAGLEV', 'TURBOFAN_JS']))
  })
})
