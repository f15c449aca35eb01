// Starts LangGraph's own server with `langgraph.json`, as `npx @langchain/langgraph-cli dev` does, without its file watcher.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { startServer } from '@langchain/langgraph-api/server'

const HERE = import.meta.dirname
const { graphs, auth, http } = JSON.parse(readFileSync(path.join(HERE, 'langgraph.json'), 'utf8'))
const port = Number(process.env['PORT'] ?? 2024)
const { host } = await startServer({ cwd: HERE, host: '127.0.0.1', port, nWorkers: 10, graphs, auth, http })
console.log(`listening on http://${host}`)
