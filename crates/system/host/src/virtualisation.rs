//! Whether a hypervisor or a container stands between us and the machine.
//!
//! It matters because a guest's clock, timer and steal figures are worth less than a machine's own.
//! The hypervisor is asked by CPUID where the processor has it, then recognised by what the
//! firmware tables say. A host that hides its hypervisor from both reads as bare metal.

use std::fs;
use std::path::Path;

use crate::kernel_file;

/// "kvm", "docker", "docker on kvm" and so on; empty on bare metal or where unknown.
pub(crate) fn detect(cpuinfo: &str) -> String {
    let firmware = |field| kernel_file::read_line(format!("/sys/class/dmi/id/{field}")).unwrap_or_default();
    let hypervisor = from_signature(&cpuid_signature(cpuinfo))
        .or_else(|| from_firmware(&firmware("sys_vendor"), &firmware("product_name")))
        .or_else(|| has_hypervisor_flag(cpuinfo).then_some("hypervisor"))
        .unwrap_or_default();
    let container = container().unwrap_or_default();
    match (container, hypervisor) {
        ("", hypervisor) => hypervisor.to_owned(),
        (container, "") => container.to_owned(),
        (container, hypervisor) => format!("{container} on {hypervisor}"),
    }
}

/// What the hypervisor says of itself; empty without one. Leaf 0x4000_0000 is only meaningful under
/// the flag.
#[cfg(target_arch = "x86_64")]
fn cpuid_signature(cpuinfo: &str) -> Vec<u8> {
    if !has_hypervisor_flag(cpuinfo) {
        return Vec::new();
    }
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|register| register.to_le_bytes()).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_signature(_cpuinfo: &str) -> Vec<u8> {
    Vec::new()
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn from_signature(signature: &[u8]) -> Option<&'static str> {
    SIGNATURES.iter().find(|(known, _)| signature.starts_with(known)).map(|(_, name)| *name)
}

fn from_firmware(vendor: &str, product: &str) -> Option<&'static str> {
    // The cloud names its bare machines like its guests but for the size ("m6g.metal").
    if product.contains(".metal") {
        return None;
    }
    let board = format!("{vendor} {product}");
    FIRMWARE.iter().find(|(words, _)| board.contains(words)).map(|(_, name)| *name)
}

/// The kind of container that this process runs in, by the engine's marker file or its control
/// groups' names.
fn container() -> Option<&'static str> {
    let groups = |of| kernel_file::read(format!("/proc/{of}/cgroup")).and_then(|text| from_cgroup(&text));
    groups("self").or_else(|| groups("1")).or_else(|| {
        // The marker alone proves nothing: virtual machines are made from container images, marker
        // included.
        let marker = MARKERS.iter().find(|(path, _)| Path::new(path).exists());
        marker.filter(|_| own_namespace()).map(|(_, name)| *name)
    })
}

/// Whether our process or control-group namespace is another than the one the system booted with.
fn own_namespace() -> bool {
    let differs = |(kind, initial): &(&str, &str)| {
        fs::read_link(format!("/proc/self/ns/{kind}")).is_ok_and(|link| link.as_os_str() != *initial)
    };
    INITIAL_NAMESPACES.iter().any(differs)
}

fn from_cgroup(text: &str) -> Option<&'static str> {
    CGROUPS.iter().find(|(word, _)| text.contains(word)).map(|(_, name)| *name)
}

/// CPUID leaf 0x4000_0000, as each vendor documents it.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"KVMKVMKVM", "kvm"),
    (b"Microsoft Hv", "hyper-v"),
    (b"VMwareVMware", "vmware"),
    (b"XenVMMXenVMM", "xen"),
    (b"TCGTCGTCGTCG", "qemu"),
    (b"VBoxVBoxVBox", "virtualbox"),
    (b"bhyve bhyve ", "bhyve"),
    (b" lrpepyh vr", "parallels"),
    (b"ACRNACRNACRN", "acrn"),
];

/// Words in the DMI vendor and product names, the more telling ones first.
const FIRMWARE: &[(&str, &str)] = &[
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("Xen", "xen"),
    ("BHYVE", "bhyve"),
    ("Parallels", "parallels"),
    ("Microsoft Corporation Virtual Machine", "hyper-v"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
    ("Amazon EC2", "amazon"),
    ("Virtual Machine", "hypervisor"),
];

/// Path elements that container engines give to control groups.
const CGROUPS: &[(&str, &str)] = &[
    ("/kubepods", "kubernetes"),
    ("/docker/", "docker"),
    ("/docker-", "docker"),
    ("/libpod-", "podman"),
    ("/lxc/", "lxc"),
    ("/lxc.payload", "lxc"),
    ("/machine.slice/machine-", "systemd-nspawn"),
];

/// Files that an engine puts into the container's root.
const MARKERS: &[(&str, &str)] = &[("/run/.containerenv", "podman"), ("/.dockerenv", "docker")];

/// Fixed inode numbers of the first namespaces: Linux `include/uapi/linux/nsfs.h`.
const INITIAL_NAMESPACES: &[(&str, &str)] = &[("pid", "pid:[4026531836]"), ("cgroup", "cgroup:[4026531835]")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hypervisors_are_known_by_their_signature() {
        let rows: &[(&[u8], Option<&str>)] = &[
            (b"KVMKVMKVM\0\0\0", Some("kvm")),
            (b"Microsoft Hv", Some("hyper-v")),
            (b"KVM", None),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0", None),
            (b"", None),
        ];
        for (n, (signature, want)) in rows.iter().enumerate() {
            assert_eq!(from_signature(signature), *want, "row {n}");
        }
    }

    #[test]
    fn firmware_names_tell_guests_from_machines() {
        let rows: &[(&str, &str, Option<&str>)] = &[
            ("QEMU", "Standard PC (Q35 + ICH9, 2009)", Some("qemu")),
            ("QEMU", "KVM Virtual Machine", Some("kvm")),
            ("VMware, Inc.", "VMware Virtual Platform", Some("vmware")),
            ("Microsoft Corporation", "Virtual Machine", Some("hyper-v")),
            ("Microsoft Corporation", "Surface Pro", None),
            ("Amazon EC2", "m6g.large", Some("amazon")),
            ("Amazon EC2", "m6g.metal", None),
            ("Dell Inc.", "PowerEdge R750", None),
            ("", "", None),
        ];
        for (n, (vendor, product, want)) in rows.iter().enumerate() {
            assert_eq!(from_firmware(vendor, product), *want, "row {n}: {vendor}, {product}");
        }
    }

    #[test]
    fn containers_are_known_by_their_control_groups() {
        let rows: &[(&str, Option<&str>)] = &[
            ("0::/docker/0123abcd\n", Some("docker")),
            ("12:cpu:/system.slice/docker-0123.scope\n", Some("docker")),
            ("0::/kubepods/burstable/pod1/docker-0123\n", Some("kubernetes")),
            ("0::/machine.slice/libpod-0123.scope/container\n", Some("podman")),
            ("0::/system.slice/docker.service\n", None),
            ("8:pids:/\n0::/\n", None),
            ("", None),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(from_cgroup(text), *want, "row {n}: {text:?}");
        }
    }

    #[test]
    fn the_hypervisor_flag_is_a_whole_word_of_the_flags() {
        assert!(has_hypervisor_flag("processor: 0\nflags\t: fpu hypervisor lahf_lm\n"));
        assert!(!has_hypervisor_flag("flags\t: fpu hypervisors\nmodel name: hypervisor\n"));
        assert!(!has_hypervisor_flag(""));
    }
}
