import { DEFINITION_MODES, NEW_TOOL_MODES, PIN_MODES } from '@toolgate/core/pins'
import { INPUT_HANDLINGS } from '@toolgate/core/tools'
import type { PrefixMode } from '@toolgate/mcp'
import * as z from 'zod'
import { maySchema } from '../may.ts'
import { serverOAuthSchema } from '../server-oauth.ts'
import { OFFERS } from '../../model/upstream.ts'
import { proxySchema } from './proxy.ts'
import { whole, name, text, texts, timeoutMs, variableName, headersSchema } from './values.ts'

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
/** The minimum length of a name: a hash needs 14 characters, and some of the name itself must remain. */
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
export const compareSchema = z
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

export const overlaySchema = z.strictObject({
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

export const itemOverlaySchema = z.strictObject({
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
    .describe('What the child gets beside its surroundings. May hold ${port}, ${user} and ${tenant}.')
    .exactOptional(),
  pass: z
    .array(variableName)
    .describe(
      "Further variables of the gateway's environment that the child gets. By default it gets paths, certificates, proxies without a password, the language and the time zone.",
    )
    .exactOptional(),
  url: text
    .describe('Where it speaks Streamable HTTP. With a command, may hold ${port}, a free port chosen at each start.')
    .exactOptional(),
  headers: headersSchema.describe('Sent with each request to `url`. May hold ${user} and ${tenant}.').exactOptional(),
  proxy: proxySchema
    .describe('The proxy through which this server is reached; "none" for no proxy. Default: that of the file.')
    .exactOptional(),
  ca: text
    .describe('A PEM file with authorities that are trusted for this server beside the usual ones.')
    .exactOptional(),
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
  inputs: z
    .enum(INPUT_HANDLINGS)
    .describe(
      "What happens to inputs that a tool's schema rejects. checked: they are refused. coerced: texts become the values that the schema wants, before rules, approvals and the audit. server: the server itself checks all inputs. Default: checked.",
    )
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
  waitForStart: z
    .boolean()
    .describe(
      'Lets requests wait for the first list of a server that is starting, for at most startTimeoutMs. Default: false, its tools are announced when it has listed.',
    )
    .exactOptional(),
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
