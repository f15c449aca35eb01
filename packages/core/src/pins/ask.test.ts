import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type StoreResult, ask } from './ask.ts'

const settle = () => new Promise((resolve) => setTimeout(resolve, 5))

describe('ask', () => {
  it('gives an answer at once where there is one at once', () => {
    const answers: StoreResult<number>[] = []
    ask(
      1000,
      () => 1,
      (answer) => answers.push(answer),
    )
    assert.deepEqual(answers, [{ value: 1 }])
  })

  it('gives what was thrown and what was rejected', async () => {
    const error = new Error('full')
    const answers: StoreResult<unknown>[] = []
    const thrower = () => {
      throw error
    }
    ask(1000, thrower, (answer) => answers.push(answer))
    ask(
      1000,
      () => Promise.reject(error),
      (answer) => answers.push(answer),
    )
    await settle()
    assert.deepEqual(answers, [{ error }, { error }])
  })

  it('answers once: at the deadline, and not again when the store has woken up', async () => {
    const answers: StoreResult<unknown>[] = []
    let wake: (value: number) => void = () => {}
    ask(
      1,
      () => new Promise((resolve) => (wake = resolve)),
      (answer) => answers.push(answer),
    )
    while (answers.length === 0) await settle()
    wake(1)
    await settle()
    assert.deepEqual(
      answers.map((answer) => 'error' in answer && (answer.error as { code: string }).code),
      ['state_unavailable'],
    )
  })
})
