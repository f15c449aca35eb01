import { Pool } from 'undici'
import { toBody, toHeaders } from './wire.js'

/**
 * The load generator, in a process of its own: for each message `{ origin, request, calls, concurrency }` it makes so
 * many requests, to several `origins` in turn, checks each answer, and sends `{ ms, p50Ms, p99Ms }` or `{ problem }` back.
 */
const pools = new Map()

function poolFor(origin, connections) {
  if (!pools.has(origin)) pools.set(origin, new Pool(origin, { connections, pipelining: 1 }))
  return pools.get(origin)
}

function ask(pool, headers, body) {
  return new Promise((resolve, reject) => {
    const chunks = []
    pool.dispatch(
      { method: 'POST', path: '/mcp', headers, body },
      {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData: (_, chunk) => void chunks.push(chunk),
        onResponseEnd: () => resolve(Buffer.concat(chunks)),
        onResponseError: (_, error) => reject(error),
      },
    )
  })
}

/** An answer counts only if it is the answer: a gateway that refuses quickly must not look cheap. */
function check(answer, id, expect) {
  const head = answer.subarray(0, 200).toString()
  if (!head.includes(`"id":${id},`) || !answer.includes(expect)) throw new Error(`unexpected answer: ${head}`)
}

async function run({ origin, origins = [origin], request, calls, concurrency }) {
  const { method, name, params, key, expect } = request
  const used = origins.map((each) => poolFor(each, concurrency))
  const headers = toHeaders(method, name, key)
  const took = []
  let next = 0
  const worker = async () => {
    while (next < calls) {
      const id = ++next
      const startedMs = performance.now()
      check(await ask(used[id % used.length], headers, toBody(id, method, params)), id, expect)
      took.push(performance.now() - startedMs)
    }
  }
  const startedMs = performance.now()
  await Promise.all(Array.from({ length: concurrency }, worker))
  took.sort((a, b) => a - b)
  return { ms: performance.now() - startedMs, p50Ms: took[calls >> 1], p99Ms: took[Math.floor(calls * 0.99)] }
}

process.on('message', (order) => {
  run(order).then(
    (result) => process.send(result),
    (error) => process.send({ problem: error.message }),
  )
})
