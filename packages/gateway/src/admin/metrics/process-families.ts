import { VERSION } from '../../files.ts'
import { counter, type Family, gauge } from '../../telemetry/exposition.ts'

export function certificateFamilies(expiresAtMs: number | undefined): readonly Family[] {
  if (expiresAtMs === undefined) return []
  const help = 'When the certificate of listen.tls ends, in seconds since 1970.'
  return [gauge('toolgate_certificate_expires_seconds', help, expiresAtMs / 1000)]
}

export function processFamilies(): readonly Family[] {
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  const startedSeconds = Math.round(Date.now() / 1000 - process.uptime())
  return [
    gauge('process_resident_memory_bytes', 'Resident memory.', rss),
    gauge('nodejs_heap_size_used_bytes', 'Used memory of the JavaScript heap.', heapUsed),
    counter('process_cpu_seconds_total', 'CPU time, of the user and the system.', (user + system) / 1e6),
    gauge('process_start_time_seconds', 'When the process began, in seconds since 1970.', startedSeconds),
    {
      name: 'toolgate_build_info',
      type: 'gauge',
      help: 'The version that runs.',
      samples: [{ labels: { version: VERSION }, value: 1 }],
    },
  ]
}
