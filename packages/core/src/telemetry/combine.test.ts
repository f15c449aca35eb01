import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallTrace, Telemetry, TracedCall } from '../ports/ports.ts'
import { combineTelemetry } from './combine.ts'

const CALL: TracedCall = { tool: undefined, callId: 'c', caller: {}, run: undefined }
const END = { status: 'refused', code: 'policy_denied' } as const

describe('combineTelemetry', () => {
  it('starts each for every call, the first around the others', () => {
    const log: string[] = []
    const call = combineTelemetry(named('a', log), named('b', log)).startCall(CALL)
    assert.equal(
      call?.within?.(() => log.push('work')),
      5,
    )
    call?.end(END)
    assert.deepEqual(log, ['start b', 'start a', 'a in', 'b in', 'work', 'b out', 'a out', 'a refused', 'b refused'])
  })

  it('has the first trace id that exists', () => {
    const without: Telemetry = { startCall: () => trace() }
    const withOne: Telemetry = { startCall: () => trace({ traceId: 'f'.repeat(32) }) }
    assert.equal(combineTelemetry(without, withOne).startCall(CALL)?.traceId, 'f'.repeat(32))
    assert.equal(combineTelemetry(without).startCall(CALL)?.traceId, undefined)
  })

  it('follows nothing where nobody does', () => {
    const nobody: Telemetry = { startCall: () => undefined }
    assert.equal(combineTelemetry().startCall(CALL), undefined)
    assert.equal(combineTelemetry(nobody, nobody).startCall(CALL), undefined)
  })

  it('lets none that throws change a call, or the traces of the others', () => {
    const fail = (): never => {
      throw new Error('no')
    }
    const log: string[] = []
    const broken: Telemetry = { startCall: () => trace({ within: fail, end: fail }) }
    const call = combineTelemetry({ startCall: fail }, broken, named('b', log)).startCall(CALL)
    let runs = 0
    assert.equal(
      call?.within?.(() => ++runs),
      1,
    )
    call?.end(END)
    assert.deepEqual(log, ['start b', 'b in', 'b out', 'b refused'])
  })
})

function trace(more: Partial<CallTrace> = {}): CallTrace {
  return { traceId: undefined, within: (work) => work(), end: () => {}, ...more }
}

function named(name: string, log: string[]): Telemetry {
  return {
    startCall() {
      log.push(`start ${name}`)
      return trace({
        within(work) {
          log.push(`${name} in`)
          const value = work()
          log.push(`${name} out`)
          return value
        },
        end: ({ status }) => log.push(`${name} ${status}`),
      })
    },
  }
}
