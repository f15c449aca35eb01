import * as z from 'zod'
import { isException, parseProxy } from '../../util/proxy-rules.ts'

/** Without a scheme or a port, a word such as "off" would be the name of a proxy. */
function isProxy(text: string): boolean {
  return (text.includes('://') || /:\d+\/?$/.test(text)) && parseProxy(text) !== undefined
}

export const proxySchema = z.union([
  z
    .string()
    .refine(
      (text) => text === 'none' || isProxy(text),
      'none, or the URL of a proxy such as http://proxy.example.com:3128',
    ),
  z.strictObject({
    url: z
      .string()
      .refine(isProxy, 'the URL of a proxy, such as http://proxy.example.com:3128')
      .describe('http or https. May hold a user and a password; prefer ${VAR}.'),
    except: z
      .array(z.string().refine(isException, 'a host, an address or a range, such as .example.com or 10.0.0.0/8'))
      .describe('Hosts that are reached directly, as in NO_PROXY. Default: those of NO_PROXY; for one server, none.')
      .exactOptional(),
  }),
])
