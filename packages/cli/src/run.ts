import { readVersion } from './files.ts'
import { runProgram } from './program.ts'
import { createStopSignals } from './stop-signals.ts'
import { growYoungGeneration } from './young-generation.ts'

// The reader of our output may stop early: `toolgate tools | head`.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const code = await runProgram(process.argv.slice(2), {
  io: { stdout: process.stdout, stderr: process.stderr, env: process.env },
  version: readVersion(),
  signals: createStopSignals({
    source: process,
    exit: (status) => process.exit(status),
    nowMs: () => performance.now(),
  }),
  start: async (...args) => {
    const { startGateway } = await import('@toolgate/gateway')
    const gateway = await startGateway(...args)
    growYoungGeneration()
    return gateway
  },
})
process.exitCode = code
// A child's pipe or a probe's socket must not keep a finished command alive.
process.stdout.write('', () => process.exit(code))
