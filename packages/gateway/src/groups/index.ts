export { commandProbe, type CommandProbeOptions, type ProcessWatch } from './command-probe.ts'
export { envProbe, type EnvProbeOptions } from './env-probe.ts'
export { httpProbe, type HttpProbeOptions } from './http-probe.ts'
export { type ProbeOptions, tcpProbe, type TcpTarget } from './tcp-probe.ts'
