// What the browser tells about the device: little, and on purpose not more than a person could read off its screen.

import type { HostInfo } from "../pure/record";
import { SOFTWARE } from "../pure/record";

export function device(): HostInfo {
  const [browser, system] = [browserName(navigator.userAgent), systemName(navigator.userAgent)];
  return {
    name: `${browser} on ${system}`,
    kernel: system,
    cpu: "",
    cores: navigator.hardwareConcurrency ?? 0,
    virtualisation: "",
    software: SOFTWARE,
  };
}

function browserName(agent: string): string {
  const found = /(Firefox|Edg|OPR|SamsungBrowser|HeadlessChrome|Chrome|Version)\/(\d+)/.exec(agent);
  if (!found) return "browser";
  const names: Record<string, string> = { Edg: "Edge", OPR: "Opera", HeadlessChrome: "Chrome", Version: "Safari" };
  return `${names[found[1]!] ?? found[1]} ${found[2]}`;
}

function systemName(agent: string): string {
  const found = /Android|iPhone|iPad|Windows|Mac OS X|CrOS|Linux/.exec(agent);
  return found?.[0] ?? "unknown";
}
