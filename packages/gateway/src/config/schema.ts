import type { CapPart } from '@toolgate/core/internal'
import { DEFINITION_MODES, NEW_TOOL_MODES, PIN_MODES } from '@toolgate/core/pins'
import type { PrefixMode } from '@toolgate/mcp'
import * as z from 'zod'
import { maySchema } from './may.ts'
import { oauthSchema } from './oauth.ts'
import { oidcSchema } from './oidc.ts'
import { isProxyRange } from '../http/client-address.ts'
import { serverOAuthSchema } from './server-oauth.ts'
import { replicaSchema, storesSchema } from './stores.ts'
import { OFFERS } from '../upstream/upstream.ts'

const CAP = /^\S+:(\d{1,7})$/
const MAX_RUNNING = 1_000_000
const MAX_CHARS = 1_000_000_000
const MAX_MS = 86_400_000
const CAP_PARTS = ['tool', 'user', 'tenant', 'session', 'chat'] as const satisfies readonly CapPart[]

function whole(min: number, max: number, what: string) {
  const expected = `a number of ${what} from ${min} to ${max}`
  return z.int().min(min, expected).max(max, expected)
}

export const capSchema = z.union([
  z
    .string()
    .regex(CAP, 'selector:max, such as "browser:*:2"')
    .refine((cap) => {
      const max = Number(CAP.exec(cap)?.[1] ?? 1)
      return max >= 1 && max <= MAX_RUNNING
    }, `selector:max with max from 1 to ${MAX_RUNNING}`),
  z.strictObject({
    match: z.string().min(1, 'text that is not empty').describe('A selector.'),
    max: whole(1, MAX_RUNNING, 'calls').describe('How many calls run at once.'),
    per: z
      .array(z.enum(CAP_PARTS))
      .describe('What is counted apart. Default: [tool]. []: all calls that match, together.')
      .exactOptional(),
    waitMs: whole(0, 3_600_000, 'milliseconds')
      .describe('How long a call waits for its turn. 0 refuses at once. Default: 10000.')
      .exactOptional(),
    maxWaiting: whole(0, MAX_RUNNING, 'calls').describe('How many calls may wait. Default: 100.').exactOptional(),
  }),
])

export const concurrencySchema = z.array(capSchema)

const bounds = {
  deadlineMs: whole(1, MAX_MS, 'milliseconds')
    .describe('Ends any call, also one whose progress goes on. Default: ten times the longest callTimeoutMs.')
    .exactOptional(),
  maxOutputChars: whole(1000, MAX_CHARS, 'characters')
    .describe('A longer output is cut, and says so. Default: 10000000.')
    .exactOptional(),
}

const callsSchema = z
  .strictObject({ ...bounds, concurrency: concurrencySchema.describe('How many calls run at once.').exactOptional() })
  .describe('What bounds each call.')

/** Caps are checked one by one, so that one bad cap does not hide another. */
export const callsShellSchema = z.strictObject({ ...bounds, concurrency: z.unknown().exactOptional() })

export const approvalsSchema = z
  .strictObject({
    ttlMs: whole(1, MAX_MS, 'milliseconds')
      .describe('How long an approval holds, from asking to its use. Default: 600000.')
      .exactOptional(),
  })
  .describe('What people are asked to approve.')

/**
 * The shape of a written `toolgate.yaml`, without defaults and with paths as written.
 *
 * The message of a check states the expected value. The found value is put before it. The
 * same schemas, described, are the published JSON Schema.
 */

/** Names that are parts of tool ids, and of their names on the wire: `namespace__tool`. */
const name = z
  .string()
  .regex(/^(?!.*__)[a-z0-9](?:[a-z0-9_-]*[a-z0-9-])?$/, 'lower-case letters, digits, "-" and single "_" between them')
  .max(64, 'at most 64 characters')

const text = z.string().min(1, 'text that is not empty')
const texts = z.array(text)
const timeoutMs = z
  .int()
  .min(1, 'a number of milliseconds from 1 to 86400000')
  .max(86_400_000, 'a number of milliseconds from 1 to 86400000')

const variableName = z.string().regex(/^[A-Za-z_]\w*$/, 'the name of an environment variable')
const headersSchema = z.record(
  z.string().regex(/^[!#$%&'*+.^`|~\w-]+$/, 'the name of an HTTP header'),
  z.string().regex(/^[\t\u0020-\u007e\u0080-\u00ff]*$/, 'the value of an HTTP header, on one line'),
)

const annotationsSchema = z
  .strictObject({
    title: text.exactOptional(),
    readOnlyHint: z.boolean().exactOptional(),
    destructiveHint: z.boolean().exactOptional(),
    idempotentHint: z.boolean().exactOptional(),
    openWorldHint: z.boolean().exactOptional(),
  })
  .describe("MCP's tool annotations, on the operator's word instead of the server's.")

const PREFIX_MODES = ['always', 'when-needed', 'never'] as const satisfies readonly PrefixMode[]
/** A name with a hash needs 14 characters and something of the name itself. */
const MIN_NAME = 24
const MAX_NAME = 128

export const namesSchema = z
  .strictObject({
    prefix: z
      .enum(PREFIX_MODES)
      .describe(
        'Whether clients get files__read_file or read_file. when-needed: the prefix where another tool that the client sees has the same name. never: a warning there. Default: always.',
      )
      .exactOptional(),
    max: whole(MIN_NAME, MAX_NAME, 'characters')
      .describe('A longer name is cut and ends in a hash. Default: 64, which every provider accepts.')
      .exactOptional(),
  })
  .describe('How clients name tools. Ids, policies and the audit keep server:name.')

const MAX_INSTRUCTIONS = 16_000
export const instructionsSchema = text.max(MAX_INSTRUCTIONS, `at most ${MAX_INSTRUCTIONS} characters`)

const inputField = z.string().regex(/^input(?:\.[^.\s]{1,100}){1,8}$/, 'a field of the input, such as input.path')
const compareSchema = z
  .strictObject({
    text: inputField.describe('The text that the call would put there, such as input.content.'),
    with: z
      .string()
      .regex(/^[^\s:*]{1,256}$/, 'the name of one tool of the same server')
      .describe('The tool of the same server that reads what is there. It must be annotated as read-only.'),
    input: z
      .record(text, z.union([inputField, z.int(), z.boolean()]))
      .describe('What that tool gets: fields of the call, such as input.path, numbers and booleans.'),
  })
  .describe(
    'Lets a person who decides a call compare what it would write with what is there. It is read with the rights of the caller, when the person asks for it.',
  )

const overlaySchema = z.strictObject({
  name: z
    .string()
    .regex(/^(?!.*__)[A-Za-z0-9-](?:[\w-]*[A-Za-z0-9-])?$/, 'letters, digits, "-" and single "_" between them')
    .max(64, 'at most 64 characters')
    .describe("What clients call it, in place of the server's own name. Its id stays.")
    .exactOptional(),
  title: text.describe("Shown in place of the server's own.").exactOptional(),
  description: text.describe("Shown to models in place of the server's own, which pins still compare.").exactOptional(),
  enabled: z.boolean().describe('false: it is as if it did not exist.').exactOptional(),
  tags: texts.describe('Marks that selectors name: tag:read.').exactOptional(),
  category: text.exactOptional(),
  requiredScopes: texts.describe('A caller must hold all of them.').exactOptional(),
  addressees: texts
    .describe('Fields of its input that say where it sends something, such as to: for origin(addressees).')
    .exactOptional(),
  annotations: annotationsSchema.exactOptional(),
  compare: compareSchema.exactOptional(),
})

const itemOverlaySchema = z.strictObject({
  tags: texts.describe('Marks that requireTags and conditions read.').exactOptional(),
  category: text.exactOptional(),
  requiredScopes: texts.describe('A caller must hold all of them.').exactOptional(),
})

export const serverSchema = z.strictObject({
  command: text.describe('The program to start. It speaks MCP on stdio, or at `url` if there is one.').exactOptional(),
  package: z
    .string()
    .regex(/^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/, 'the name of an npm package')
    .describe('An installed npm package whose command is started with this Node. Nothing is downloaded.')
    .exactOptional(),
  bin: text.describe('Which command of the package, when it has several.').exactOptional(),
  args: z.array(z.string()).describe('May hold ${port}, ${user} and ${tenant}.').exactOptional(),
  cwd: text
    .describe("Where it runs. Default: a folder of each user's own, or the configuration file's folder if shared.")
    .exactOptional(),
  env: z
    .record(variableName, z.string())
    .describe('All that the child gets beside PATH and HOME. May hold ${port}, ${user} and ${tenant}.')
    .exactOptional(),
  url: text
    .describe('Where it speaks Streamable HTTP. With a command, may hold ${port}, a free port chosen at each start.')
    .exactOptional(),
  headers: headersSchema.describe('Sent with each request to `url`. May hold ${user} and ${tenant}.').exactOptional(),
  oauth: serverOAuthSchema.exactOptional(),
  era: z
    .enum(['auto', 'legacy', 'modern'])
    .describe('Which protocol era to speak. Default: auto, which probes over HTTP and is legacy on stdio.')
    .exactOptional(),
  per: z
    .enum(['shared', 'user'])
    .describe(
      'user: an instance for each user, with its own HOME and working folder. shared: one serves all, as the server keeps nothing of its callers. Default: user. A remote server without sessions has one connection.',
    )
    .exactOptional(),
  listing: z
    .enum(['shared', 'user'])
    .describe(
      'shared: all users see one list, of an instance that answers no calls. user: each sees the list of their own instance, as the server lists only for a signed-in user. Default: shared; with oauth: user.',
    )
    .exactOptional(),
  loopback: z
    .boolean()
    .describe("Binds a child's listening sockets to loopback, for servers that have no host option.")
    .exactOptional(),
  trustHints: z
    .boolean()
    .describe("Lets the server's own annotations satisfy an `allow`. Default: false.")
    .exactOptional(),
  offers: z
    .array(z.enum(OFFERS))
    .describe('The kinds of its items that are offered. resources include resource templates. Default: [tools].')
    .exactOptional(),
  may: maySchema.exactOptional(),
  accepts: texts
    .describe(
      "Labels that it may raise itself, in dev.toolgate/labels of a result's _meta: of `labels`, or untrusted. Default: [].",
    )
    .exactOptional(),
  startTimeoutMs: timeoutMs.describe('Default: 30000.').exactOptional(),
  callTimeoutMs: timeoutMs.describe('Default: 60000.').exactOptional(),
  names: namesSchema.exactOptional(),
  instructions: z
    .union([z.literal(false, 'text, or false'), instructionsSchema])
    .describe("Sent to clients in place of the server's own instructions. false: none.")
    .exactOptional(),
  tools: z
    .record(
      z
        .string()
        .regex(/^[^:\s]{1,128}$/, 'the name of a tool of this server, or a glob such as "read_*"')
        .regex(/^[^{}]*$/, 'a name or a glob without { and }, which are not read: write a key for each name'),
      overlaySchema,
    )
    .describe("The operator's overlay, by tool name or glob; several that match add up.")
    .exactOptional(),
  resources: z
    .record(
      z.string().regex(/^\S{1,2048}$/, 'a URI, a URI template or a glob such as "file:///logs/*"'),
      itemOverlaySchema,
    )
    .describe("The operator's overlay of resources and templates, by URI or glob. Unlisted resources get it too.")
    .exactOptional(),
  prompts: z
    .record(
      z
        .string()
        .regex(/^[^:\s]{1,128}$/, 'the name of a prompt, or a glob such as "ask_*"')
        .regex(/^[^{}]*$/, 'a name or a glob without { and }, which are not read: write a key for each name'),
      itemOverlaySchema,
    )
    .describe("The operator's overlay of prompts, by name or glob.")
    .exactOptional(),
})
export type ServerInput = z.infer<typeof serverSchema>

export const serversSchema = z
  .record(name, serverSchema)
  .describe('The MCP servers behind the gateway, by the namespace that their tools get.')

/** The name of a key. */
export const KEY_ID: RegExp = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

export const callerSchema = z.strictObject({
  key: z
    .string()
    .min(8, 'a key of at least 8 characters')
    .describe('The API key itself. Prefer ${VAR} or keyHash.')
    .exactOptional(),
  keyHash: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 lower-case hex digits')
    .describe('The SHA-256 of the key.')
    .exactOptional(),
  for: z
    .enum(['mcp', 'console', 'host'])
    .describe(
      'mcp: an agent. console: a person (API, console, approvals). host: a program that runs agents. Default: mcp.',
    )
    .exactOptional(),
  id: z
    .string()
    .regex(KEY_ID, '1 to 64 letters, digits, ".", "_" and "-"')
    .describe('The name of the key. Required where a user has several for one use.')
    .exactOptional(),
  expires: z
    .union([z.iso.date(), z.iso.datetime({ offset: true })])
    .describe('When the key ends: 2027-01-31, or 2027-01-31T12:00:00Z. Default: never.')
    .exactOptional(),
  apps: z
    .array(text)
    .min(1, 'at least one app')
    .describe('The apps that the key opens. Default: all, and /mcp.')
    .exactOptional(),
  user: text,
  tenant: text.exactOptional(),
  roles: texts.exactOptional(),
  scopes: texts.exactOptional(),
  attributes: z
    .record(z.string(), z.unknown())
    .describe('Anything that conditions need: caller.attributes.')
    .exactOptional(),
})
export type CallerInput = z.infer<typeof callerSchema>

const probeTimeoutMs = timeoutMs.describe('Default: 1000, for a command 5000.').exactOptional()
const port = z.int().min(1, 'a port from 1 to 65535').max(65_535, 'a port from 1 to 65535')
const status = z.int().min(100, 'a status from 100 to 599').max(599, 'a status from 100 to 599')

/** By the key that names the kind of a probe. */
export const probeSchemas = {
  env: z
    .strictObject({
      env: variableName.describe("A variable of the gateway's own environment, set and not blank."),
      equals: text.describe('The value that it must have.').exactOptional(),
    })
    .describe('An environment variable that is set.'),
  tcp: z
    .strictObject({
      tcp: z.union([z.string(), port]).describe('host:port, or a port of 127.0.0.1.'),
      timeoutMs: probeTimeoutMs,
    })
    .describe('Something that listens.'),
  http: z
    .strictObject({
      http: text.describe('A URL, asked with GET. Redirects are not followed.'),
      status: z
        .union([status, z.array(status).min(1, 'at least one status')])
        .describe('Default: any from 200 to 299.')
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
      variables: z.record(variableName, z.string()).describe('All that it gets beside PATH and HOME.').exactOptional(),
      timeoutMs: probeTimeoutMs,
    })
    .describe('A command that ends with code 0.'),
  server: z
    .strictObject({ server: text.describe('The name of a server.') })
    .describe('A server of this gateway that is up.'),
} as const

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

export const labelsSchema = z
  .record(z.string(), texts)
  .describe(
    'Which tools give their output which labels: { trusted: ["contacts:*"], private: ["crm:*"] }. Without trusted it is untrusted.',
  )

const historyMs = timeoutMs.exactOptional()

export const historySchema = z
  .strictObject({
    calledMs: historyMs.describe('How long what was called counts. Default: 3600000.'),
    labelMs: historyMs.describe('How long a label counts after it last rose. Default: 86400000.'),
  })
  .describe('What is known of callers without a run, where rules ask.')

export const clauseSchema = z.union([
  text,
  z.strictObject({
    id: text.exactOptional(),
    match: z.union([text, z.array(text).min(1, 'at least one selector')]).describe('Which tools it is about.'),
    when: text.describe('CEL over caller and tool: holds only where this is true.').exactOptional(),
    unless: text.describe('CEL over caller and tool: does not hold where this is true.').exactOptional(),
    input: text.describe('CEL over input, caller and tool: known only when the tool is called.').exactOptional(),
    message: text
      .describe('On a denial: told to the caller. Without it the tool is as if it did not exist.')
      .exactOptional(),
    by: z.literal('other').describe('Under ask: another person than the one who asks must approve.').exactOptional(),
    login: z
      .string()
      .regex(/^[1-9]\d{0,5}[smh]$/, 'a time such as "30s", "5m" or "1h"')
      .describe("Under ask: the longest time since the approver's login, such as 5m.")
      .exactOptional(),
    mode: z
      .literal('shadow')
      .describe('Under deny and ask: records what the clause would do, and does nothing else.')
      .exactOptional(),
  }),
])

const clauses = z.array(clauseSchema)

/** A policy whose clauses are still to be checked one by one, so that one bad clause does not hide another. */
export const policyShellSchema = z.strictObject({
  name: text.exactOptional(),
  allow: z.array(z.unknown()).exactOptional(),
  deny: z.array(z.unknown()).exactOptional(),
  ask: z.array(z.unknown()).exactOptional(),
  requireTags: texts.exactOptional(),
  mode: z
    .literal('shadow')
    .describe('Calls are decided as if the policy were absent, and their records say what it would do.')
    .exactOptional(),
})

const policySchema = policyShellSchema.extend({
  allow: clauses
    .describe('Present: a tool is allowed only where one of these holds. [] allows nothing.')
    .exactOptional(),
  deny: clauses.describe('Denied where one of these holds.').exactOptional(),
  ask: clauses.describe('A person must approve where one of these holds.').exactOptional(),
  requireTags: texts.describe('A tool without all of these is denied.').exactOptional(),
})

/** An app whose policies are still to be checked, clause by clause. */
export const appShellSchema = z.strictObject({
  title: text.exactOptional(),
  import: z
    .array(
      z.union([
        text,
        z.strictObject({
          group: text,
          visibility: z
            .enum(['conditional', 'hidden'])
            .describe('conditional: offered only while the group is available. hidden: not offered.')
            .exactOptional(),
        }),
      ]),
    )
    .describe('Groups, by name.')
    .exactOptional(),
  tools: z.array(text).describe('Selectors of tools beside those of its groups; group: excepted.').exactOptional(),
  policy: z.array(z.unknown()).exactOptional(),
  instructions: instructionsSchema
    .describe("Sent to each client of this app at its start, for the model, after the gateway's own.")
    .exactOptional(),
})

const appSchema = appShellSchema.extend({
  policy: z.array(policySchema).describe("Met with the gateway's: it can only tighten.").exactOptional(),
})

export const appsSchema = z
  .record(name, appSchema)
  .describe('Named bundles of groups and tools, each served at /mcp/<name>.')

export const listenSchema = z.strictObject({
  host: text.describe('Default: 127.0.0.1. Beyond loopback, callers are required.').exactOptional(),
  port: z
    .int()
    .min(0, 'a port from 0 (any free one) to 65535')
    .max(65_535, 'a port from 0 (any free one) to 65535')
    .describe('Default: 8787. 0: any free one.')
    .exactOptional(),
  origins: z
    .array(z.string().regex(/^https?:\/\/[^/\s?#]+\/?$/, 'an origin, such as https://tools.example.com'))
    .describe('Further names it is reached by, such as https://tools.example.com in front of a proxy.')
    .exactOptional(),
  proxies: z
    .array(z.string().refine(isProxyRange, 'an address such as 127.0.0.1, or a range such as 10.0.0.0/8'))
    .describe('Proxies in front. Only their X-Forwarded-For is read, to count wrong keys by client.')
    .exactOptional(),
  tls: z
    .strictObject({
      certFile: text.describe('PEM: the certificate, then those that lead to its authority.'),
      keyFile: text.describe('PEM: its private key, without a passphrase.'),
    })
    .describe('Serves HTTPS instead of HTTP. A reload reads both files again.')
    .exactOptional(),
})

const LOOPBACK_ORIGIN = /^http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/

export const publicUrlSchema = z
  .string()
  .refine(
    (url) =>
      URL.canParse(url) && new URL(url).origin === url && (url.startsWith('https://') || LOOPBACK_ORIGIN.test(url)),
    'an https origin without a path, such as https://tools.example.com, or one of loopback',
  )
  .describe(
    'The origin that people reach the gateway by: links to approvals begin with it. Default: where it listens, if that is loopback.',
  )

const SPAN = /^[1-9]\d{0,4}[hd]$/
const SPAN_HELP = 'a time such as "90d" or "36h"'

const INPUT_KEY = /^(?:[\da-fA-F]{64}|[\w+/-]{43}=?)$/
const inputKey = z.string().regex(INPUT_KEY, '32 bytes in hex or base64; "openssl rand -hex 32" makes one')

export const auditSchema = z.strictObject({
  store: z
    .enum(['postgres', 'sqlite', 'jsonl', 'memory'])
    .describe('postgres: one audit of all replicas, in stores.postgres. Default: postgres with stores, else sqlite.')
    .exactOptional(),
  path: text
    .describe(
      'Default: .toolgate/audit.db or .toolgate/audit.jsonl. With durable: disk, a folder of this replica alone; default .toolgate/audit.',
    )
    .exactOptional(),
  durable: z
    .enum(['shared', 'disk'])
    .describe(
      'Of postgres. disk: a call waits for the disk of its replica, which ships records within a second. shared (default): for the database.',
    )
    .exactOptional(),
  mode: z
    .enum(['batched', 'required'])
    .describe('required: each record is durable before the call goes on. batched (default): within a second.')
    .exactOptional(),
  preview: z
    .boolean()
    .describe('Whether the redacted beginning of each input is kept beside its hash. Default: true.')
    .exactOptional(),
  inputs: z
    .union([
      z.enum(['redacted', 'facts']),
      z.strictObject({
        keep: z.literal('sealed'),
        key: inputKey.describe(
          '32 bytes in hex or base64, such as "${TOOLGATE_INPUT_KEY}". Who has it can open inputs.',
        ),
        olderKeys: z
          .array(inputKey)
          .max(100, 'at most 100 keys')
          .describe('Earlier keys: they still open what they have sealed.')
          .exactOptional(),
        keepFor: z
          .string()
          .regex(SPAN, SPAN_HELP)
          .describe('How long inputs are kept, such as 7d. Their records stay. Default: as long as the records.')
          .exactOptional(),
      }),
    ])
    .describe(
      'What is kept of inputs beside the preview. facts: what the conditions in force read of each call, for toolgate what-if; texts that are only compared as keyed hashes. keep: sealed: that, and the whole input, encrypted with a key of yours. Default: redacted, nothing.',
    )
    .exactOptional(),
  checkpoints: z
    .union([
      z.literal(false),
      z.strictObject({
        path: text
          .describe(
            'Default: in a folder checkpoints beside the audit. Better on another disk, or shipped to another host.',
          )
          .exactOptional(),
        keyFile: text
          .describe('An Ed25519 private key in PEM. Default: made at first use, beside the checkpoints.')
          .exactOptional(),
        everyRecords: z
          .int()
          .min(1, 'a number from 1 to 1000000')
          .max(1_000_000, 'a number from 1 to 1000000')
          .exactOptional(),
        everySeconds: z
          .int()
          .min(1, 'a number from 1 to 86400')
          .max(86_400, 'a number from 1 to 86400')
          .exactOptional(),
      }),
    ])
    .describe('Signed checkpoints, which show that a tail was cut off. Default: each 1000 records, and each minute.')
    .exactOptional(),
  witness: z
    .strictObject({
      file: text.describe('A file on another disk that each signed checkpoint is appended to.').exactOptional(),
      url: text.describe('The submission prefix of a C2SP tlog-witness.').exactOptional(),
      key: text.describe('The public key of the witness at url: name+id+key.').exactOptional(),
    })
    .describe('Of an audit that replicas share: who sees each signed checkpoint, so that a forged log is found.')
    .exactOptional(),
  rotate: z
    .strictObject({
      bytes: z.int().min(100_000, 'a number from 100000').describe('Once the file has so many bytes.').exactOptional(),
      every: z.string().regex(SPAN, SPAN_HELP).describe('Once its first record is so old, such as 1d.').exactOptional(),
    })
    .describe('When a file of JSON lines is closed and another begun. Default with retain: each day; else never.')
    .exactOptional(),
  retain: z
    .string()
    .regex(SPAN, SPAN_HELP)
    .describe(
      'How long records are kept, such as 90d. Older ones are removed; the others still verify. Default: for ever.',
    )
    .exactOptional(),
})

const PIN_HELP =
  'When the definition of a tool changes. suspend: it is taken away until a person accepts it. Default: warn.'
export const pinsSchema = z
  .union([
    z.enum(PIN_MODES),
    z.strictObject({
      changed: z.enum(PIN_MODES).describe(PIN_HELP).exactOptional(),
      new: z
        .enum(NEW_TOOL_MODES)
        .describe('suspend: a tool that joins a known server is held until a person accepts it. Default: pin.')
        .exactOptional(),
    }),
  ])
  .describe(PIN_HELP)
const CHECK_HELP =
  'What a definition with invisible characters or the like does. quarantine: it is hidden. Default: warn.'
export const definitionsSchema = z.enum(DEFINITION_MODES).describe(CHECK_HELP)

const DRAIN = 'a number of milliseconds from 0 to 3600000'
export const drainSchema = z
  .int()
  .min(0, DRAIN)
  .max(3_600_000, DRAIN)
  .describe('How long running calls may take when the gateway stops. Default: 30000.')

const instanceCount = z
  .int()
  .min(1, 'a number of instances from 1 to 10000')
  .max(10_000, 'a number of instances from 1 to 10000')

export const instancesSchema = z
  .strictObject({
    idleMs: timeoutMs.describe('An instance that runs no call for so long is ended. Default: 900000.').exactOptional(),
    perUser: instanceCount.describe('Instances of one user, over all servers. Default: 8.').exactOptional(),
    max: instanceCount.describe('Instances of all users. Default: 32.').exactOptional(),
    path: text.describe('Each instance has a folder below it. Default: .toolgate/instances.').exactOptional(),
  })
  .describe('The instances of servers with one for each user.')

export const metricsSchema = z.strictObject({
  public: z.boolean().describe('Lets /metrics be read without a console key. Default: false.').exactOptional(),
})

export const searchSchema = z
  .union([
    z.enum(['auto', 'always', 'never']),
    z.strictObject({
      offer: z.enum(['auto', 'always', 'never']).describe('Default: auto.').exactOptional(),
      above: z
        .int()
        .min(1, 'a number of tools from 1 to 100000')
        .max(100_000, 'a number of tools from 1 to 100000')
        .describe('auto also offers them to those whose list has more tools than this.')
        .exactOptional(),
    }),
  ])
  .describe('When search_tools, get_tool_details and call_tool are offered. auto: where something is locked.')

export const redactSchema = z.strictObject({
  keys: texts.describe('Further keys whose values are secret, such as internal_pin.').exactOptional(),
  patterns: texts.describe('Further values that are secret, as patterns in RE2 syntax.').exactOptional(),
})

export const stateSchema = z
  .strictObject({
    store: z.enum(['sqlite', 'memory']).describe('Default: sqlite.').exactOptional(),
    path: text.describe('Default: .toolgate/state.db. Several gateways of one machine may share it.').exactOptional(),
  })
  .describe('Where approvals, halts, preferences and the pins of tools are kept. memory: gone when the gateway ends.')

export const watchSchema = z
  .boolean()
  .describe(
    'Applies a change of this file by itself if it only tightens. Others wait for "toolgate reload". Default: false.',
  )

export const secretCommandsSchema = z
  .strictObject({
    env: z
      .record(variableName, z.string())
      .describe('Their variables, besides PATH and HOME: { VAULT_TOKEN: "${VAULT_TOKEN}" }.')
      .exactOptional(),
    timeoutMs: timeoutMs.describe('For each. Default: 10000.').exactOptional(),
  })
  .describe('How the commands of ${command:…} run: at the start and at each reload, without a shell.')

const MAX_USES = 1_000_000
const MAX_WINDOW_SECONDS = 31 * 24 * 60 * 60

/** The dimensions by which the gate counts separately. */
const LIMIT_PARTS = ['tenant', 'tool', 'chat', 'user', 'actor', 'client'] as const

const LIMIT = /^\S+:(\d{1,9})\/(\d{1,9})$/

const limitTextSchema = z
  .string()
  .regex(LIMIT, 'selector:max/seconds, such as "files:write_file:5/60"')
  .refine((limit) => {
    const [, max = 1, seconds = 1] = (LIMIT.exec(limit) ?? []).map(Number)
    return max >= 1 && max <= MAX_USES && seconds >= 1 && seconds <= MAX_WINDOW_SECONDS
  }, `selector:max/seconds with max from 1 to ${MAX_USES} and seconds from 1 to ${MAX_WINDOW_SECONDS}`)

export const limitSchema = z.union([
  limitTextSchema,
  z.strictObject({
    match: text.describe('A selector.'),
    max: z
      .int()
      .min(1, `a number of uses from 1 to ${MAX_USES}, with a cost to 2^53 - 1`)
      .max(Number.MAX_SAFE_INTEGER, `a number of uses from 1 to ${MAX_USES}, with a cost to 2^53 - 1`)
      .describe(`How many uses in any window of that length: up to ${MAX_USES}; with a cost up to 2^53 - 1.`),
    windowMs: z
      .int()
      .min(1, `a number of milliseconds from 1 to ${MAX_WINDOW_SECONDS * 1000}`)
      .max(MAX_WINDOW_SECONDS * 1000, `a number of milliseconds from 1 to ${MAX_WINDOW_SECONDS * 1000}`),
    per: z
      .array(z.enum(LIMIT_PARTS))
      .describe('What is counted apart. Default: tenant, tool, chat and user. Required with a cost.')
      .exactOptional(),
    cost: text
      .describe('How much of max a call takes: CEL over input, caller and tool, such as units(input.amount, 2).')
      .exactOptional(),
    maxCost: z
      .int()
      .min(0, 'a whole number from 0')
      .describe('What a call costs whose input does not say it, and the most that a call may cost.')
      .exactOptional(),
    settle: text
      .describe('What a call of a trusted tool has really cost: CEL over its structured output too.')
      .exactOptional(),
    refund: z.literal('failed').describe('failed: a call that fails costs nothing.').exactOptional(),
  }),
])

export const configSchema = z
  .strictObject({
    listen: listenSchema.exactOptional(),
    publicUrl: publicUrlSchema.exactOptional(),
    servers: serversSchema,
    names: namesSchema.exactOptional(),
    instructions: instructionsSchema
      .describe('Sent to each client at its start, for the model, before those of the servers that it sees.')
      .exactOptional(),
    instances: instancesSchema.exactOptional(),
    callers: z.array(callerSchema).describe('Who may come, by API key.').exactOptional(),
    oauth: oauthSchema.exactOptional(),
    oidc: oidcSchema.exactOptional(),
    groups: groupsSchema.exactOptional(),
    aliases: aliasesSchema.exactOptional(),
    labels: labelsSchema.exactOptional(),
    history: historySchema.exactOptional(),
    apps: appsSchema.exactOptional(),
    policy: z
      .array(policySchema)
      .min(1, 'at least one policy')
      .describe(
        'Required. Policies are combined by meeting: each can only tighten. [{ allow: ["*"] }] allows everything.',
      ),
    limits: z.array(limitSchema).describe('At most max uses in any window of so many seconds.').exactOptional(),
    calls: callsSchema.exactOptional(),
    drainMs: drainSchema.exactOptional(),
    approvals: approvalsSchema.exactOptional(),
    audit: auditSchema.exactOptional(),
    state: stateSchema.exactOptional(),
    stores: storesSchema.exactOptional(),
    replica: replicaSchema.exactOptional(),
    redact: redactSchema.describe('What is hidden beside what looks like a secret by itself.').exactOptional(),
    search: searchSchema.exactOptional(),
    secretCommands: secretCommandsSchema.exactOptional(),
    watch: watchSchema.exactOptional(),
    metrics: metricsSchema.describe('GET /metrics, for Prometheus.').exactOptional(),
    pins: pinsSchema.exactOptional(),
    definitions: definitionsSchema.exactOptional(),
  })
  .describe('The configuration of a Toolgate gateway, toolgate.yaml.')

/** The shapes of lists and mappings whose entries are checked one by one. */
export const callersSchema = configSchema.shape.callers.unwrap()
export const policiesSchema = configSchema.shape.policy
export const limitsSchema = configSchema.shape.limits.unwrap()

/** Returns the JSON Schema (2020-12) of `toolgate.yaml`, for editors, as the text of `toolgate.schema.json`. */
export function configJsonSchema(): string {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { io: 'input' })
  return `${JSON.stringify({ $schema, title: 'toolgate.yaml', ...schema }, undefined, 2)}\n`
}
