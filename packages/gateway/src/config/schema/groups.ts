import * as z from 'zod'
import { reportIn } from '../reading.ts'
import { name, text, texts, timeoutMs, variableName, headersSchema } from './values.ts'

const probeTimeoutMs = timeoutMs.describe('Default: 1000, for a command 5000.').exactOptional()
const port = z.int().min(1, 'a port from 1 to 65535').max(65_535, 'a port from 1 to 65535')
const status = z.int().min(100, 'a status from 100 to 599').max(599, 'a status from 100 to 599')

/** The schema of each kind of probe, by its key. */
export const probeSchemas = {
  env: z
    .strictObject({
      env: variableName.describe("A variable of the gateway's own environment, set and not blank."),
      equals: text.describe('The value that it must have.').exactOptional(),
    })
    .describe('An environment variable that is set.'),
  tcp: z
    .strictObject({
      tcp: z.union([z.string(), port]).describe('host:port, or a port of 127.0.0.1.').transform(toAddress),
      timeoutMs: probeTimeoutMs,
    })
    .describe('Something that listens.'),
  http: z
    .strictObject({
      http: text.describe('A URL, asked with GET. Redirects are not followed.').superRefine(checkHttpUrl),
      status: z
        .union([status, z.array(status).min(1, 'at least one status')])
        .describe('Default: any from 200 to 299.')
        .transform((found) => [found].flat())
        .exactOptional(),
      headers: headersSchema.exactOptional(),
      timeoutMs: probeTimeoutMs,
    })
    .describe('A URL that answers as it should.'),
  command: z
    .strictObject({
      command: z
        .array(z.string())
        .min(1, 'a program and its arguments')
        .describe('A program and its arguments: no shell reads them.'),
      cwd: text.describe("Where it runs. Default: the configuration file's folder.").exactOptional(),
      variables: z.record(variableName, z.string()).describe('What it gets beside its surroundings.').exactOptional(),
      timeoutMs: probeTimeoutMs,
    })
    .describe('A command that ends with code 0.'),
  server: z
    .strictObject({ server: text.describe('The name of a server.') })
    .describe('A server of this gateway that is up.'),
} as const

const HOST_PORT = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/

/** Parses `host:port`, `[::1]:port` or a bare port (of 127.0.0.1). */
function toAddress(written: string | number, ctx: z.RefinementCtx): { readonly host: string; readonly port: number } {
  const bare = String(written)
  const [, v6, hostname, digits] = /^\d{1,5}$/.test(bare)
    ? ['', undefined, '127.0.0.1', bare]
    : (HOST_PORT.exec(bare) ?? [])
  const host = v6 ?? hostname
  const number = Number(digits)
  if (host !== undefined && number >= 1 && number <= 65_535) return { host, port: number }
  ctx.addIssue({ code: 'custom', message: 'host:port such as "127.0.0.1:4444", or a port from 1 to 65535' })
  return z.NEVER
}

function checkHttpUrl(written: string, ctx: z.RefinementCtx): void {
  const url = URL.parse(written)
  if (url?.username || url?.password)
    reportIn(ctx, [], 'found a user or password in the URL, expected them in "headers"', false)
  else if (!url || !/^https?:$/.test(url.protocol))
    ctx.addIssue({ code: 'custom', message: 'a URL such as "http://127.0.0.1:9200/health"' })
}

/** A group whose probes are still to be checked one by one. */
export const groupShellSchema = z.strictObject({
  tools: z.array(text).min(1, 'at least one selector').describe('Selectors; group: excepted.'),
  visibility: z
    .enum(['always', 'conditional'])
    .describe('conditional: offered only while every probe answers. Default: conditional where there are probes.')
    .exactOptional(),
  availableWhen: z.array(z.unknown()).min(1, 'at least one probe').exactOptional(),
  ttlMs: timeoutMs.describe('How long an answer of its probes is kept. Default: 10000.').exactOptional(),
  suggestion: text.describe('What to do when it is unavailable, as a sentence.').exactOptional(),
  title: text.exactOptional(),
  dependsOn: texts.describe('Groups without which this one is unavailable.').exactOptional(),
  hint: text.describe('What it is good for, as a sentence: told while it is locked.').exactOptional(),
  unlock: z
    .union([
      z.enum(['request', 'search']),
      z.strictObject({ event: text.describe('called:<tool id>: such a call of this session has ended well.') }),
    ])
    .describe('Locked until a session opens it: by request_tools, by a search that finds it, or by an event.')
    .exactOptional(),
})
export type GroupInput = z.infer<typeof groupShellSchema>

const groupSchema = groupShellSchema.extend({
  availableWhen: z
    .array(z.union(Object.values(probeSchemas)))
    .min(1, 'at least one probe')
    .describe('Probes, all of which must be answered.')
    .exactOptional(),
})

export const groupsSchema = z
  .record(name, groupSchema)
  .describe('Named sets of tools, for selectors such as group:web.')

export const aliasesSchema = z
  .record(z.string(), text)
  .describe('Other names of tools, for policies, groups and limits: { exec: "shell:bash" }. They cannot be called.')
