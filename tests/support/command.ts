import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { runProgram } from '../../packages/cli/src/program.ts'
import { createStopSignals } from '../../packages/cli/src/stop-signals.ts'
import { fakeIo } from '../../packages/cli/src/testing/fake-io.ts'
import { KEYS } from './keys.ts'

/** Runs `toolgate` in this process, with the console's key, against a running gateway. */
export async function runCommand(url: string, ...args: readonly string[]) {
  return runCommandIn({ TOOLGATE_URL: url }, ...args)
}

/** The same, with these variables. */
export async function runCommandIn(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const io = fakeIo({ TOOLGATE_KEY: KEYS.console, ...env })
  const signals = createStopSignals({ source: new EventEmitter(), exit: () => {}, nowMs: () => 0 })
  const code = await runProgram(args, { io, version: '1', signals, start: () => assert.fail('nothing is started') })
  return { code, out: io.out(), err: io.err() }
}
