"""Machines that crash: what was acknowledged is there, named as lost, or put aside; never dropped.

A crash is imitated by what it leaves: the manager's data directory as it was some seconds before, a
storage node's objects cut or changed while no process had them, and marks that name another boot.
"""

import json
import os
import pathlib
import shutil
import time

import cluster
from cluster import check, placed_directory, set_hint, wait_until

MIB = 1 << 20
FORGOTTEN = 20


def data_directory(store):
    command = store.command("manager", "h0")
    return pathlib.Path(command[command.index("--data-dir") + 1])


def object_directory(store, host):
    command = store.command("storage", host)
    return pathlib.Path(command[command.index("--dir") + 1])


def find_object(directory, file_id):
    return next(directory.glob(f"objects/*/{file_id:016x}"))


def content(number, size=MIB):
    return (b"%08d" % number) * (size // 8)


def write(path, data):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    check(os.write(fd, data) == len(data), f"{path}: short write")
    os.close(fd)


def read(path):
    """Bytes, or the error's number; never the kernel's pages."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        return error.errno
    try:
        data = b""
        while chunk := os.read(fd, 4 * MIB):
            data += chunk
        return data
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)


def aside(store):
    return json.loads(store.tell("--json", "adopt"))


def name_another_boot(path, old):
    """In a mark of the manager's or a node's."""
    text = path.read_text()
    check(old in text, f"{path} does not name this boot")
    path.write_text(text.replace(old, "another" + old[7:]))


def boot_id():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def end_mounts(store):
    """Mounts that remember would tell a manager of what it has forgotten."""
    return {host: store.kill("mount", host) for host in store.hosts}


def forget(store, directory, put_back):
    """Writes files into a directory, and replaces the manager's data by a copy from before.

    put_back(data): called while no manager runs, with the old data in place; returns flags for the
    manager's next start. Returns the number in the content of each forgotten file by its id.
    """
    write(f"{directory}/kept", content(1))
    data = data_directory(store)
    # While nothing is written, a copy of the directory is what a crash leaves.
    copy = data.with_name("data.copy")
    shutil.copytree(data, copy)
    time.sleep(1.5)
    ids = {}
    for number in range(FORGOTTEN):
        write(f"{directory}/f{number}", content(number, 4 * MIB))
        ids[os.stat(f"{directory}/f{number}").st_ino] = number
    manager = store.kill("manager", "h0")
    shutil.rmtree(data)
    copy.rename(data)
    store.start("manager", "h0", manager + put_back(data))
    wait_until(lambda: len(aside(store)) == len(ids), 30, "objects put aside")
    check(all(each["file"] in ids for each in aside(store)), "foreign files are put aside")
    return ids


def check_adoption(store, ids):
    """Adopts all forgotten files but one, reads them on each host, and discards the last."""
    adopted = sorted(ids)[:-1]
    store.tell("adopt", *map(str, adopted))
    for host in store.hosts:
        for file_id in adopted:
            path = f"{store.mount(host)}/lost+found/#{file_id}"
            got = wait_until(
                lambda path=path: (data := read(path)) != 5 and data,
                15,
                "an adopted file",
            )
            check(got == content(ids[file_id], 4 * MIB), f"{host}: #{file_id} has other bytes")
            if host == store.hosts[-1]:
                os.unlink(path)
    store.tell("adopt", "--discard", "--all")
    check(aside(store) == [], "something is still put aside")
    left = [p for host in store.hosts for p in object_directory(store, host).glob("lost+found/*")]
    wait_until(lambda: not any(path.exists() for path in left), 10, "discarded objects to go")


def files_that_a_crash_forgot_are_adopted(store):
    directory = placed_directory(f"{store.mount('h1')}/before", "stripe")
    mounts = {}

    def put_back(data):
        mounts.update(end_mounts(store))
        name_another_boot(data / "mosa-run", boot_id())
        return []

    ids = forget(store, directory, put_back)
    for host, command in mounts.items():
        store.start("mount", host, command)
    check(read(f"{directory}/kept") == content(1), "a file from before the crash is not there")
    check(not os.path.exists(f"{directory}/f0"), "the crash was not imitated")
    for number in range(30):  # New files do not get the ids of those that were forgotten.
        write(f"{directory}/new{number}", content(900 + number, 64 << 10))
        check(os.stat(f"{directory}/new{number}").st_ino not in ids, "an id was given out twice")
    check_adoption(store, ids)


def files_that_an_older_copy_does_not_know_are_adopted(store):
    """An older copy of the data is put back on the same boot, while the mounts go on."""
    for flags in ([], ["--restored"]):
        name = f"copied{len(flags)}"
        directory = placed_directory(f"{store.mount('h1')}/{name}", "stripe")
        ids = forget(store, directory, lambda _, flags=flags: flags)
        for host in store.hosts:
            seen = f"{store.mount(host)}/{name}"
            check(read(f"{seen}/kept") == content(1), f"{host}: a file of the copy is not there")
            check(not os.path.exists(f"{seen}/f0"), f"{host} shows a forgotten file")
        check_adoption(store, ids)
    command = [word for word in store.kill("manager", "h0") if word != "--restored"]
    store.start("manager", "h0", command)


def a_truncated_object_is_named_and_no_zeroes(store):
    directory = placed_directory(f"{store.mount('h1')}/cut", "node:h2")
    names = ("cut", "gone", "rotten", "whole")
    for name in names:
        write(f"{directory}/{name}", content(7, 4 * MIB))
    ids = {name: os.stat(f"{directory}/{name}").st_ino for name in names}
    objects = object_directory(store, "h2")
    log = objects / "sums"
    wait_until(lambda: sum(p.stat().st_size for p in log.iterdir()) > 4 * 250, 20, "records")
    # The manager cannot tell from a list that a file which changed a few seconds ago is lost.
    time.sleep(8)
    node = store.kill("storage", "h2")
    os.truncate(find_object(objects, ids["cut"]), 0)
    find_object(objects, ids["gone"]).unlink()
    with open(find_object(objects, ids["rotten"]), "r+b") as damaged:
        damaged.seek(MIB + 17)
        damaged.write(b"rot")
    store.start("storage", "h2", node)

    def lost():
        return [each["path"] for each in json.loads(store.tell("--json", "lost"))]

    wait_until(lambda: "/cut/cut" in lost(), 20, "the truncated file in 'mosa lost'")
    wait_until(lambda: "/cut/gone" in lost(), 20, "the file without an object in 'mosa lost'")
    check("/cut/whole" not in lost(), "'mosa lost' names a whole file")
    for host in store.hosts:
        at = f"{store.mount(host)}/cut"
        check(read(f"{at}/whole") == content(7, 4 * MIB), f"{host}: a whole file has other bytes")
        check(read(f"{at}/cut") == 5, f"{host}: a truncated object is read")
        check(read(f"{at}/gone") == 5, f"{host}: an object that is not there is read")
        check(read(f"{at}/rotten") in (5, content(7, 4 * MIB)), f"{host}: rot is read")


def after_another_boot_objects_are_compared(store):
    directory = placed_directory(f"{store.mount('h1')}/boot", "node:h2")
    for name in ("good", "rotten"):
        write(f"{directory}/{name}", content(8, 4 * MIB))
    rotten = os.stat(f"{directory}/rotten").st_ino
    objects = object_directory(store, "h2")
    time.sleep(3)
    write(f"{directory}/late", content(9, MIB))  # Not sealed when the machine crashes.
    node = store.kill("storage", "h2")
    with open(find_object(objects, rotten), "r+b") as damaged:
        damaged.seek(3 * MIB)
        damaged.write(b"rot")
    name_another_boot(objects / "mosa-node.json", boot_id())
    store.start("storage", "h2", node)
    at = f"{store.mount('h1')}/boot"
    wait_until(lambda: read(f"{at}/good") == content(8, 4 * MIB), 15, "what is as it was")
    check(read(f"{at}/rotten") == 5, "rot is served after another boot")


def foreign_states_are_refused_in_a_sentence(store):
    kept = placed_directory(f"{store.mount('h1')}/foreign", "stripe") + "/kept"
    write(kept, content(1))
    manager = store.kill("manager", "h0")
    data = pathlib.Path(manager[manager.index("--data-dir") + 1])
    mark = data / "mosa-run"
    for text in (b"", b"\xff" * 300, b"mosa-run 9\n"):
        mark.write_bytes(text)
        store.start("manager", "h0", manager)
        manager = store.kill("manager", "h0")
    store.start("manager", "h0", manager)
    node = store.kill("storage", "h1")
    objects = pathlib.Path(node[node.index("--dir") + 1])
    for path in (objects / "sums").iterdir():
        path.write_bytes(os.urandom(5000))
    (objects / "lost+found" / "not-ours").write_text("left alone")
    store.start("storage", "h1", node)
    check((objects / "lost+found" / "not-ours").exists(), "a foreign file was removed")
    check(read(kept) == content(1), "a file is gone")


def test(arguments):
    with cluster.Cluster(arguments.bin, 2) as store:
        set_hint(store.mount("h1"), "replicas", "1")
        for part in (
            files_that_a_crash_forgot_are_adopted,
            files_that_an_older_copy_does_not_know_are_adopted,
            a_truncated_object_is_named_and_no_zeroes,
            after_another_boot_objects_are_compared,
            foreign_states_are_refused_in_a_sentence,
        ):
            if arguments.only not in part.__name__:
                continue
            begin = time.monotonic()
            part(store)
            print(f"{part.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    cluster.main(
        test,
        limit_s=400,
        add_arguments=lambda parser: parser.add_argument("--only", default="", help="part of a part's name"),
        description=__doc__,
    )
