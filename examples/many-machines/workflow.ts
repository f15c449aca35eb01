import { appendFileSync, existsSync, readFileSync } from 'node:fs'

type Step = <T>(name: string, work: (key: string) => Promise<T>) => Promise<T>

/**
 * The least of a durable runner, as Workflow, Inngest and Temporal are: it begins again after each crash. Steps that have ended
 * are replayed from the journal. The step at which it crashed may have made its call, so it makes it again, with the same key.
 */
export async function runWorkflow(id: string, journal: string, workflow: (step: Step) => Promise<void>): Promise<void> {
  const lines = existsSync(journal) ? readFileSync(journal, 'utf8').trimEnd().split('\n') : []
  const ended = new Map(lines.map((line) => JSON.parse(line) as [string, unknown]))
  await workflow(async (name, work) => {
    if (ended.has(name)) return ended.get(name) as never
    const result = await work(`${id}/${name}`)
    appendFileSync(journal, `${JSON.stringify([name, result])}\n`)
    return result
  })
}
